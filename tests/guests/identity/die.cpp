// Two bugs, below helpers that are inlined, and a handler that ends the program.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace store {
[[noreturn]] void fatal(const std::string &why) {
    std::fprintf(stderr, "fatal: %s\n", why.c_str());
    std::abort();
}

struct Book {
    std::vector<int> lines;
    void add(int line) { lines.push_back(line); }
    void check(unsigned most) const {
        if (lines.size() >= most) fatal("too many lines: " + std::to_string(lines.size()));
    }
};
} // namespace store

static store::Book ones, twos;

extern "C" __attribute__((export_name("one"))) void one() {
    ones.add(1);
    if (ones.lines.size() == 2) store::fatal("one");
}

extern "C" __attribute__((export_name("two"))) void two() {
    twos.add(2);
    if (twos.lines.size() == 2) store::fatal("two");
}
