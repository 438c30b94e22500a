// One error of the heap in each rule, and what is none.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RULE(name) __attribute__((export_name("rule:" #name), noinline)) void name(void)

// Nothing is known of what it points to, so that no access is left out.
static char *volatile hidden;

static char *hide(void *block) {
    hidden = block;
    return hidden;
}

RULE(write_after) {
    char *block = hide(malloc(16));
    block[16] = 1;
    free(block);
}

RULE(read_after) {
    int *block = (int *)hide(calloc(5, 4));
    hidden = (char *)(intptr_t)block[5];
    free(block);
}

RULE(write_before) {
    char *block = hide(malloc(16));
    block[-1] = 1;
    free(block);
}

RULE(across_the_end) {
    char *block = hide(malloc(13));
    *(volatile uint64_t *)(block + 8) = 1;
    free(block);
}

RULE(read_of_freed) {
    char *block = hide(malloc(8));
    free(block);
    hidden = (char *)(intptr_t)block[3];
}

RULE(read_after_realloc) {
    char *block = hide(malloc(8));
    free(hide(realloc(block, 100)));
    block[0] = 1;
}

RULE(copy_too_much) {
    char *block = hide(malloc(24));
    static char from[64];
    size_t length = (size_t)hide((void *)30);
    memcpy(block, from, length);
    free(block);
}

RULE(string_too_long) {
    char *block = hide(malloc(5));
    strcpy(block, hide("hello"));
    free(block);
}

RULE(fill_too_much) {
    char *block = hide(malloc(40));
    memset(block, 7, (size_t)hide((void *)41));
    free(block);
}

RULE(freed_again) {
    char *block = hide(malloc(8));
    free(block);
    free(hidden);
}

RULE(free_of_interior) {
    char *block = hide(malloc(32));
    free(hidden + 4);
    free(block);
}

RULE(realloc_of_freed) {
    char *block = hide(malloc(8));
    free(block);
    hide(realloc(hidden, 9));
}

RULE(aligned_after) {
    char *block = hide(aligned_alloc(64, 64));
    block[64] = 1;
    free(block);
}

RULE(write_to_nothing) {
    char *block = hide(malloc(0));
    block[0] = 1;
    free(block);
}

RULE(none) {
    char *block = hide(malloc(13));
    memset(block, 1, 13);
    block = hide(realloc(block, 400));
    memset(block + 13, 2, 387);
    block = hide(realloc(block, 3));
    strcpy(block, "hi");
    free(block);
    free(0);
    void *aligned = 0;
    if (posix_memalign(&aligned, 256, 10) == 0 && (uintptr_t)hide(aligned) % 256 == 0) {
        ((char *)hidden)[9] = 1;
        free(aligned);
    }
    int *zeros = (int *)hide(calloc(100, 4));
    for (int i = 0; i < 100; i++)
        if (zeros[i] != 0)
            abort();
    free(zeros);
}

// What a libc may do that reads by words: the string ends within the last word of the block.
RULE(string_that_fits) {
    char *block = hide(malloc(5));
    memcpy(block, hide("four"), 5);
    char *copy = hide(malloc(strlen(block) + 1));
    strcpy(copy, block);
    if (strlen(copy) != 4 || strcmp(copy, block) || strchr(copy, 'r') != copy + 3 || memchr(copy, 'x', 5))
        abort();
    free(copy);
    free(block);
}

RULE(copy_from_too_little) {
    char *block = hide(malloc(24));
    char *from = hide(malloc(4));
    size_t length = (size_t)hide((void *)5);
    memcpy(block, from, length);
    free(from);
    free(block);
}

// The first bits of all bytes, which a string's functions look at too.
RULE(ascii_word) {
    uint32_t *block = (uint32_t *)hide(malloc(1));
    hidden = (char *)(uintptr_t)(*block & 0x80808080u);
    free(block);
}
