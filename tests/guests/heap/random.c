// Many operations on the heap, whose content is checked. What they add up to is `sum`.
#include <spelunk.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 200 };

static struct {
    unsigned char *bytes;
    size_t size;
    unsigned char value;
} blocks[BLOCKS];

static uint64_t state = 1;
static uint32_t sum;

static uint32_t next(uint32_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static void check(int at) {
    for (size_t i = 0; i < blocks[at].size; i++)
        if (blocks[at].bytes[i] != blocks[at].value)
            abort();
}

static void fill(int at, unsigned char *bytes, size_t size) {
    if (!bytes)
        abort();
    blocks[at].bytes = bytes;
    blocks[at].size = size;
    blocks[at].value = (unsigned char)next(256);
    memset(bytes, blocks[at].value, size);
    sum = sum * 31 + blocks[at].value + (uint32_t)size;
}

static void operate(void) {
    int at = (int)next(BLOCKS);
    size_t size = next(8) ? next(200) : next(20000);
    if (!blocks[at].bytes) {
        switch (next(3)) {
        case 0: {
            unsigned char *zeros = calloc(1, size);
            for (size_t i = 0; zeros && i < size; i++)
                if (zeros[i])
                    abort();
            fill(at, zeros, size);
            break;
        }
        case 1:
            fill(at, aligned_alloc(32, (size + 31) / 32 * 32), size);
            if ((uintptr_t)blocks[at].bytes % 32)
                abort();
            break;
        default:
            fill(at, malloc(size), size);
        }
        return;
    }
    check(at);
    if (next(2)) {
        free(blocks[at].bytes);
        blocks[at].bytes = 0;
        return;
    }
    size_t kept = blocks[at].size < size ? blocks[at].size : size;
    unsigned char *moved = realloc(blocks[at].bytes, size ? size : 1);
    for (size_t i = 0; i < kept; i++)
        if (moved[i] != blocks[at].value)
            abort();
    fill(at, moved, size);
}

__attribute__((export_name("rule:operate"))) void rule(void) {
    for (int i = 0; i < 1000; i++)
        operate();
}

__attribute__((export_name("rule:tell"))) void tell(void) {
    char text[9] = {0};
    for (int i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[sum >> (28 - 4 * i) & 15];
    spelunk_note(text);
}
