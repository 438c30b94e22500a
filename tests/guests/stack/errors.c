// One error of the stack in each rule, and what is none.
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RULE(name) __attribute__((export_name("rule:" #name), noinline)) void name(void)
#define APART __attribute__((noinline))
#define INLINED __attribute__((always_inline)) inline

// Nothing is known of what it points to, so that no access is left out.
static char *volatile hidden;
static volatile int zero;
static volatile char sink;

static char *hide(void *at) {
    hidden = at;
    return hidden;
}

RULE(write_after) {
    char block[16];
    hide(block)[16 + zero] = 1;
}

RULE(read_after) {
    int block[8];
    memset(block, 0, sizeof block);
    sink = (char)((int *)hide(block))[8 + zero];
}

RULE(write_by_pointer) {
    char block[32];
    hide(block)[32] = 1;
}

RULE(off_by_one) {
    int block[12];
    int *at = (int *)hide(block);
    for (int i = 0; i <= 12 + zero; i++)
        at[i] = i;
}

RULE(fill_too_much) {
    char block[64];
    memset(hide(block), 7, (size_t)(65 + zero));
}

RULE(copy_too_much) {
    char block[48];
    static char from[64];
    memcpy(hide(block), from, (size_t)(50 + zero));
}

RULE(string_too_long) {
    char block[16];
    static char text[] = "sixteen letters!";
    strcpy(hide(block), zero ? "" : text);
}

struct record {
    int count;
    char name[12];
};

RULE(end_of_struct) {
    struct record record;
    record.count = 12;
    hide(record.name)[record.count + zero] = 1;
}

static INLINED void inlined(char *to, int count) { memset(to, 1, (size_t)count); }

RULE(in_inlined) {
    char block[16];
    inlined(hide(block), 80 + zero);
}

static APART void deeper(int depth) {
    char block[16];
    char *at = hide(block);
    if (depth)
        deeper(depth - 1);
    else
        memset(at, 1, (size_t)(80 + zero));
    sink = at[3 + zero];
}

RULE(in_recursion) { deeper(10); }

static APART int add(int count, ...) {
    va_list list;
    int sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++)
        sum += va_arg(list, int);
    va_end(list);
    return sum;
}

RULE(too_few_arguments) { sink = (char)add(5 + zero, 1, 2, 3, 4); }

struct large {
    int64_t of[4];
};

static APART int64_t total(struct large given) {
    int64_t *of = (int64_t *)hide(given.of), total = 0;
    for (int i = 0; i < 16 + zero; i++)
        total += of[i];
    return total;
}

RULE(by_value) {
    struct large given = {{1, 2, 3, 4}};
    hide(&given);
    sink = (char)total(given);
}

RULE(in_large_frame) {
    char block[20000];
    hide(block)[20000 + zero] = 1;
}

static APART void fills(char *to, int count) {
    for (int i = 0; i < count; i++)
        to[i] = 1;
}

RULE(by_callee) {
    char block[16];
    fills(hide(block), 17);
}

static APART void variable(int count) {
    char fixed[16], block[count];
    hide(block)[zero] = 1;
    memset(hide(fixed), 1, (size_t)(80 + zero));
}

RULE(with_variable_size) { variable(40); }

RULE(aligned) {
    _Alignas(64) char block[64];
    char *at = hide(block);
    if ((uintptr_t)at % 64)
        abort();
    // What lies between, for alignment, is a part of the frame.
    for (int i = 0; i < 64 + 64 + 64; i++)
        at[i] = 1;
}

static APART int64_t sum_of(struct large given) {
    return given.of[0] + given.of[1 + zero] + given.of[2] + given.of[3];
}

static APART struct large made(int64_t of) {
    struct large made = {{of, of, of, of}};
    return made;
}

static APART int sized(int count) {
    int sum = 0;
    for (int round = 1; round < count; round++) {
        char block[round];
        memset(hide(block), round, (size_t)round);
        sum += block[round - 1] + add(2, 1, round);
    }
    return sum;
}

RULE(of_the_heap) {
    char *block = hide(malloc(16));
    block[16 + zero] = 1;
    free(block);
}

RULE(by_the_host) {
    char block[32];
    if (getentropy(hide(block), (size_t)(40 + zero)))
        abort();
    sink = block[zero];
}

RULE(none_by_the_host) {
    char block[32];
    if (getentropy(hide(block), (size_t)(32 + zero)))
        abort();
    sink = block[zero];
}

RULE(none) {
    char block[16], text[6];
    memset(hide(block), 1, 16);
    strcpy(hide(text), "five!");
    if (strlen(text) != 5 || strchr(text, '!') != text + 5 - 1 || memchr(hide(block), 2, 16))
        abort();
    if (add(4, 1, 2, 3, 4) != 10 || sum_of(made(3)) != 12 || sized(9) != 80)
        abort();
    char *end = block + 16;
    for (char *at = hide(block); at < end; at++)
        sink = *at;
}
