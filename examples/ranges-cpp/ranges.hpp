// The parts of a file that have been received, as a downloader keeps them.

#ifndef RANGES_HPP
#define RANGES_HPP

#include <map>

class Ranges {
public:
    /// The bytes from `start` up to `end` have been received, some of them perhaps before.
    void add(int start, int end);

    /// The bytes from `start` up to `end` are lost.
    void remove(int start, int end);

    bool contains(int position) const;

    /// The end of each range by its start. No two ranges overlap or touch.
    const std::map<int, int> &all() const { return ends; }

private:
    std::map<int, int> ends;
};

#endif
