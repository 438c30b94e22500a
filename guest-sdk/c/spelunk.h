/* Spelunk for guests in C and C++: the imports of ABI.md, with a few functions for strings that end in a 0. README.md
   says what each does and how to build; spelunk.hpp has strings and containers of C++.

   A function becomes an export by SPELUNK_EXPORT: `rule_NAME`, `precondition_NAME`, `invariant_NAME`, `setup`, `teardown`,
   `check` or `state`, or `SPELUNK_EXPORT_AS("rule:NAME")` for other names. SPELUNK_FAULT declares a fault. */

#ifndef SPELUNK_H
#define SPELUNK_H

#include <stdint.h>

#define SPELUNK_EXPORT_AS(name) __attribute__((export_name(name)))
#define SPELUNK_EXPORT(function) SPELUNK_EXPORT_AS(#function) function

#define SPELUNK_IMPORT(name) __attribute__((import_module("spelunk"), import_name(#name)))
#define SPELUNK_NORETURN __attribute__((noreturn))

#ifdef __cplusplus
extern "C" {
#endif

/* Choices. Each has a simplest answer, which is tried first. */
SPELUNK_IMPORT(boolean) int32_t spelunk_boolean(double probability);
SPELUNK_IMPORT(index) uint32_t spelunk_index(uint32_t n);
SPELUNK_IMPORT(integer) int64_t spelunk_integer(int64_t min, int64_t max, int64_t simplest);
SPELUNK_IMPORT(unsigned) uint64_t spelunk_unsigned(uint64_t min, uint64_t max, uint64_t simplest);
SPELUNK_IMPORT(float) double spelunk_float(double min, double max, int32_t flags);
SPELUNK_IMPORT(bytes) uint32_t spelunk_bytes(void *at, uint32_t min_len, uint32_t max_len);

#define SPELUNK_FLOAT_NAN 1
#define SPELUNK_FLOAT_INFINITE 2

/* Spans. The label is constant data. */
SPELUNK_IMPORT(span_begin) void spelunk_span_begin_with(const char *label, uint32_t len);
SPELUNK_IMPORT(span_end) void spelunk_span_end(int32_t is_discarded);

/* Outcomes. */
SPELUNK_IMPORT(reject) SPELUNK_NORETURN void spelunk_reject(void);
SPELUNK_IMPORT(fail) SPELUNK_NORETURN void spelunk_fail_with(const char *message, uint32_t len);
SPELUNK_IMPORT(panic)
SPELUNK_NORETURN void spelunk_panic(const char *message, uint32_t len, const char *file, uint32_t file_len,
                                    uint32_t line, uint32_t column);
SPELUNK_IMPORT(unreachable) SPELUNK_NORETURN void spelunk_never_with(const char *name, uint32_t len);

/* Properties. */
SPELUNK_IMPORT(always) void spelunk_always_with(const char *name, uint32_t len, int32_t condition);
SPELUNK_IMPORT(sometimes) void spelunk_sometimes_with(const char *name, uint32_t len, int32_t condition);
SPELUNK_IMPORT(reachable) void spelunk_reachable_with(const char *name, uint32_t len);

/* Guidance, faults, the state that is compared, and the story of a finding. */
SPELUNK_IMPORT(target) void spelunk_target_with(double score, const char *label, uint32_t len);
SPELUNK_IMPORT(observe) void spelunk_observe_with(int64_t number, const char *name, uint32_t len);
SPELUNK_IMPORT(event) void spelunk_event_with(const char *text, uint32_t len);
SPELUNK_IMPORT(fault) int32_t spelunk_fault_with(const char *name, uint32_t len);
SPELUNK_IMPORT(state) void spelunk_state(const void *bytes, uint32_t len);
SPELUNK_IMPORT(verbose) int32_t spelunk_verbose(void);
SPELUNK_IMPORT(describe)
void spelunk_describe_with(const char *name, uint32_t len, const char *value, uint32_t value_len);
SPELUNK_IMPORT(note) void spelunk_note_with(const char *text, uint32_t len);

#ifdef __cplusplus
}
#endif

static inline uint32_t spelunk_len(const char *text) {
    uint32_t len = 0;
    while (text[len]) len++;
    return len;
}

/* Either way; false is tried first. */
static inline int spelunk_flip(void) { return spelunk_boolean(0.5); }

/* An element of an array; the first is the simplest. */
#define SPELUNK_SAMPLED(array) ((array)[spelunk_index(sizeof(array) / sizeof((array)[0]))])

/* The following choices belong together, up to spelunk_span_end. */
static inline void spelunk_span_begin(const char *label) { spelunk_span_begin_with(label, spelunk_len(label)); }

/* Ends the run as a finding. */
static inline SPELUNK_NORETURN void spelunk_fail(const char *message) {
    spelunk_fail_with(message, spelunk_len(message));
}

/* Gives up a run that does not count, unless the condition holds. */
static inline void spelunk_assume(int condition) {
    if (!condition) spelunk_reject();
}

/* A finding, told apart from others by its place, unless the condition holds. */
#define SPELUNK_ASSERT(condition)                                                                              \
    ((condition) ? (void)0                                                                                     \
                 : spelunk_panic(#condition, sizeof(#condition) - 1, __FILE__, sizeof(__FILE__) - 1, __LINE__, 1))

/* Ends the run as a finding: this must never be reached. */
static inline SPELUNK_NORETURN void spelunk_never(const char *name) { spelunk_never_with(name, spelunk_len(name)); }

/* The condition holds wherever this is reached; where it does not, the run ends as a finding. */
static inline void spelunk_always(const char *name, int condition) {
    spelunk_always_with(name, spelunk_len(name), condition);
}

/* The condition is expected to hold at least once. */
static inline void spelunk_sometimes(const char *name, int condition) {
    spelunk_sometimes_with(name, spelunk_len(name), condition);
}

/* This is expected to be reached at least once. */
static inline void spelunk_reachable(const char *name) { spelunk_reachable_with(name, spelunk_len(name)); }

/* Declares a property, outside of any function, so that it is reported if it is never reached:
   SPELUNK_PROPERTY("sometimes", "the queue is full"). */
#define SPELUNK_PROPERTY(kind, name)                                                                           \
    __asm__(".section \".custom_section.spelunk:properties\",\"\",@\n.ascii \"" kind " " name "\\n\"\n.text\n")

/* The exploration prefers what raises the highest score of this label. */
static inline void spelunk_target(double score, const char *label) {
    spelunk_target_with(score, label, spelunk_len(label));
}

/* The exploration goes on from where a number is observed first under this name. */
static inline void spelunk_observe(const char *name, int64_t number) {
    spelunk_observe_with(number, name, spelunk_len(name));
}

/* Counted; the report says how often each event happened. */
static inline void spelunk_event(const char *text) { spelunk_event_with(text, spelunk_len(text)); }

/* Declares the fault NAME, outside of any function. */
#define SPELUNK_FAULT(name)                                                                                    \
    void SPELUNK_EXPORT(fault_##name)(int32_t is_on);                                                          \
    void fault_##name(int32_t is_on) { (void)is_on; }

/* Whether this fault is on. */
static inline int spelunk_fault(const char *name) { return spelunk_fault_with(name, spelunk_len(name)); }

/* A line below the step. */
static inline void spelunk_note(const char *text) { spelunk_note_with(text, spelunk_len(text)); }

/* The argument NAME of this step is this text, shown as it is. */
static inline void spelunk_describe_text(const char *name, const char *value) {
    spelunk_describe_with(name, spelunk_len(name), value, spelunk_len(value));
}

/* The argument NAME of this step is this number. Returns it: `n = spelunk_describe("n", spelunk_integer(1, 9, 1))`. */
static inline int64_t spelunk_describe(const char *name, int64_t value) {
    char digits[20];
    uint32_t at = sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (!spelunk_verbose()) return value;
    do digits[--at] = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0) digits[--at] = '-';
    spelunk_describe_with(name, spelunk_len(name), digits + at, (uint32_t)sizeof digits - at);
    return value;
}

#endif
