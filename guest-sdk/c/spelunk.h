/* Spelunk for guests in C: the imports of ABI.md, with a few functions for strings that end in a 0.

   Build with clang, without a libc or with one:

       clang --target=wasm32 -O2 -nostdlib -Wl,--no-entry guest.c -o guest.wasm

   A function becomes an export by SPELUNK_EXPORT: `rule_NAME`, `precondition_NAME`, `invariant_NAME`,
   `fault_NAME`, `setup`, `teardown`, `check` or `state`, or `SPELUNK_EXPORT_AS("rule:NAME")` for other names. */

#ifndef SPELUNK_H
#define SPELUNK_H

#include <stdint.h>

#define SPELUNK_EXPORT_AS(name) __attribute__((export_name(name)))
#define SPELUNK_EXPORT(function) SPELUNK_EXPORT_AS(#function) function

#define SPELUNK_IMPORT(name) __attribute__((import_module("spelunk"), import_name(#name)))

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
SPELUNK_IMPORT(span_begin) void spelunk_span_begin(const char *label, uint32_t label_len);
SPELUNK_IMPORT(span_end) void spelunk_span_end(int32_t is_discarded);

/* Outcomes. */
SPELUNK_IMPORT(reject) _Noreturn void spelunk_reject(void);
SPELUNK_IMPORT(fail) _Noreturn void spelunk_fail_with(const char *message, uint32_t len);
SPELUNK_IMPORT(panic)
_Noreturn void spelunk_panic(const char *message, uint32_t len, const char *file, uint32_t file_len, uint32_t line,
                             uint32_t column);
SPELUNK_IMPORT(unreachable) _Noreturn void spelunk_unreachable(const char *name, uint32_t len);

/* Properties. */
SPELUNK_IMPORT(always) void spelunk_always(const char *name, uint32_t len, int32_t condition);
SPELUNK_IMPORT(sometimes) void spelunk_sometimes(const char *name, uint32_t len, int32_t condition);
SPELUNK_IMPORT(reachable) void spelunk_reachable(const char *name, uint32_t len);

/* Guidance, faults, the state that is compared, and the story of a finding. */
SPELUNK_IMPORT(target) void spelunk_target(double score, const char *label, uint32_t len);
SPELUNK_IMPORT(event) void spelunk_event(const char *text, uint32_t len);
SPELUNK_IMPORT(fault) int32_t spelunk_fault(const char *name, uint32_t len);
SPELUNK_IMPORT(state) void spelunk_state(const void *bytes, uint32_t len);
SPELUNK_IMPORT(verbose) int32_t spelunk_verbose(void);
SPELUNK_IMPORT(describe)
void spelunk_describe(const char *name, uint32_t len, const char *value, uint32_t value_len);
SPELUNK_IMPORT(note) void spelunk_note_with(const char *text, uint32_t len);

static inline uint32_t spelunk_len(const char *text) {
    uint32_t len = 0;
    while (text[len]) len++;
    return len;
}

/* Either way; false is tried first. */
static inline int spelunk_flip(void) { return spelunk_boolean(0.5); }

/* A line below the step. */
static inline void spelunk_note(const char *text) { spelunk_note_with(text, spelunk_len(text)); }

/* Ends the run as a finding. */
static inline _Noreturn void spelunk_fail(const char *message) {
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

#endif
