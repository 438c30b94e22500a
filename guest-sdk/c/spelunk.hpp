// Spelunk for guests in C++: spelunk.h, with the strings and containers of C++. README.md says what each does.

#ifndef SPELUNK_HPP
#define SPELUNK_HPP

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "spelunk.h"

namespace spelunk {

inline uint32_t len(std::string_view text) { return static_cast<uint32_t>(text.size()); }

/// Either way; false is the simplest.
inline bool flip() { return spelunk_flip(); }

/// True with this probability; false is the simplest.
inline bool boolean(double probability) { return spelunk_boolean(probability); }

/// One of 0..n, without n; 0 is the simplest. With n = 0 the run ends as a deadlock.
inline std::size_t index(std::size_t n) { return spelunk_index(static_cast<uint32_t>(n)); }

/// In min..=max, of any type of integers; the simplest is 0, or the bound nearest to it.
template <typename T> T integer(T min, T max) {
    if constexpr (std::is_signed_v<T>) return static_cast<T>(spelunk_integer(min, max, 0));
    return static_cast<T>(spelunk_unsigned(min, max, 0));
}

/// In min..=max and finite; the simplest is 0, or the bound nearest to it.
inline double floating(double min, double max) { return spelunk_float(min, max, 0); }

/// At least min and at most max; few and zeros are the simplest.
inline std::vector<uint8_t> bytes(uint32_t min, uint32_t max) {
    std::vector<uint8_t> drawn(max);
    drawn.resize(spelunk_bytes(drawn.data(), min, max));
    return drawn;
}

/// An element of a container; the first is the simplest.
template <typename Container> const auto &sampled(const Container &items) {
    return *std::next(std::begin(items), static_cast<std::ptrdiff_t>(index(std::size(items))));
}

/// The choices that are made while this lives belong together. The label is constant data.
class Span {
public:
    explicit Span(std::string_view label) { spelunk_span_begin_with(label.data(), len(label)); }
    ~Span() { spelunk_span_end(0); }
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;
};

/// Gives up a run that does not count, unless the condition holds.
inline void assume(bool condition) { spelunk_assume(condition); }

/// Ends the run as a finding. SPELUNK_ASSERT ends it with a place.
[[noreturn]] inline void fail(std::string_view message) { spelunk_fail_with(message.data(), len(message)); }

/// The condition holds wherever this is reached; where it does not, the run ends as a finding.
inline void always(std::string_view name, bool condition) { spelunk_always_with(name.data(), len(name), condition); }

/// The condition is expected to hold at least once. SPELUNK_PROPERTY declares it.
inline void sometimes(std::string_view name, bool condition) {
    spelunk_sometimes_with(name.data(), len(name), condition);
}

/// This is expected to be reached at least once. SPELUNK_PROPERTY declares it.
inline void reachable(std::string_view name) { spelunk_reachable_with(name.data(), len(name)); }

/// Ends the run as a finding: this must never be reached.
[[noreturn]] inline void never(std::string_view name) { spelunk_never_with(name.data(), len(name)); }

/// The exploration prefers what raises the highest score of this label.
inline void target(double score, std::string_view label = "") {
    spelunk_target_with(score, label.data(), len(label));
}

/// The exploration goes on from where a number is observed first under this name.
inline void observe(std::string_view name, int64_t number) {
    spelunk_observe_with(number, name.data(), len(name));
}

/// Counted; the report says how often each event happened.
inline void event(std::string_view text) { spelunk_event_with(text.data(), len(text)); }

/// Whether this fault is on. SPELUNK_FAULT declares it.
inline bool fault(std::string_view name) { return spelunk_fault_with(name.data(), len(name)); }

/// Whether a finding is being reported, so that it pays to format.
inline bool verbose() { return spelunk_verbose(); }

/// The argument `name` of this step has this value, a number or a text, which is returned: `describe("n", integer(1, 9))`.
template <typename T> T describe(std::string_view name, T value) {
    if (verbose()) {
        std::string shown;
        if constexpr (std::is_arithmetic_v<T>) {
            shown = std::to_string(value);
        } else {
            shown.append("\"").append(value).append("\"");
        }
        spelunk_describe_with(name.data(), len(name), shown.data(), len(shown));
    }
    return value;
}

/// A line below the step.
inline void note(std::string_view text) { spelunk_note_with(text.data(), len(text)); }

}

#endif
