// The ranges, and a set of all bytes that are in them.

#include <set>

#include "ranges.hpp"
#include "spelunk.hpp"

namespace {

constexpr int file_len = 16;

Ranges ranges;
std::set<int> expected;

struct Part {
    int start, end;
};

Part part() {
    int start = spelunk::describe("start", spelunk::integer(0, file_len - 1));
    int end = spelunk::describe("end", spelunk::integer(start + 1, file_len));
    return {start, end};
}

}

void SPELUNK_EXPORT(rule_receive)() {
    auto [start, end] = part();
    ranges.add(start, end);
    for (int position = start; position < end; position++) expected.insert(position);
}

void SPELUNK_EXPORT(rule_lose)() {
    auto [start, end] = part();
    ranges.remove(start, end);
    for (int position = start; position < end; position++) expected.erase(position);
}

void SPELUNK_EXPORT(invariant_contains_what_was_received)() {
    for (int position = 0; position < file_len; position++) {
        SPELUNK_ASSERT(ranges.contains(position) == expected.contains(position));
    }
}
