/* What fuzzers get stuck at in C, after the descriptions of the test suites of AFL++ and LLVM. Each export is a fuzz target that
 * ends at the input that is looked for. */

#include <ctype.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROADBLOCK(name) \
    __attribute__((export_name(#name))) int name(const uint8_t *data, size_t len)

/* The input that was looked for. */
static void solved(void) { __builtin_trap(); }

/* The input as a text, cut where it is too long. */
static const char *text_of(const uint8_t *data, size_t len) {
    static char text[256];
    size_t count = len < sizeof text - 1 ? len : sizeof text - 1;
    memcpy(text, data, count);
    text[count] = 0;
    return text;
}

static uint32_t word(const uint8_t *data) {
    uint32_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

ROADBLOCK(equal_texts) {
    if (strcmp(text_of(data, len), "open the gate") == 0) solved();
    return 0;
}

ROADBLOCK(prefix_and_bytes) {
    const char *text = text_of(data, len);
    if (len >= 15 && strncmp(text, "HDR/2.7", 7) == 0 && memcmp(data + 7, "\x01\xfe\x80\x7f\x00\xff\x10\x20", 8) == 0) solved();
    return 0;
}

ROADBLOCK(found_text) {
    const char *found = strstr(text_of(data, len), "admin=");
    if (found && strstr(found, ";level=root")) solved();
    return 0;
}

ROADBLOCK(parsed_integer) {
    char *end;
    long number = strtol(text_of(data, len), &end, 10);
    if (number == 48271993 && *end == ';') solved();
    return 0;
}

ROADBLOCK(parsed_hexadecimal) {
    char *end;
    unsigned long number = strtoul(text_of(data, len), &end, 16);
    if (number == 0xc0ffee11 && *end == 0) solved();
    return 0;
}

ROADBLOCK(parsed_float) {
    if (atof(text_of(data, len)) == 31.25) solved();
    return 0;
}

ROADBLOCK(switches) {
    if (len < 12) return 0;
    switch (word(data)) {
    case 0x00000001: case 0x10203040: case 0x7fffffff: return 1;
    case 0xdeadbeef: break;
    default: return 0;
    }
    switch (word(data + 4)) {
    case 0x80000000: case 0x00010000: return 2;
    case 0x13371337: break;
    default: return 0;
    }
    switch (word(data + 8)) {
    case 5: case 0x41414141: return 3;
    case 0xfeedface: solved();
    }
    return 0;
}

static uint32_t table[256];

static uint32_t crc32(const uint8_t *data, size_t len) {
    if (!table[1]) {
        for (uint32_t at = 0; at < 256; at++) {
            uint32_t value = at;
            for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xedb88320 : value >> 1;
            table[at] = value;
        }
    }
    uint32_t crc = ~0u;
    while (len--) crc = table[(crc ^ *data++) & 255] ^ crc >> 8;
    return ~crc;
}

ROADBLOCK(checksum_of_chunk) {
    if (len < 12 || word(data + 8) != crc32(data, 8)) return 0;
    if (memcmp(data, "IDAT", 4) == 0 && data[4] == 0x78 && data[5] > 0x90) solved();
    return 0;
}

/* Type, length, value: what is wanted is a name, then a number, then an end, which together are the whole input. */
ROADBLOCK(fields) {
    size_t at = 0;
    int stage = 0;
    while (at + 3 <= len) {
        unsigned type = data[at], size = data[at + 1] | data[at + 2] << 8;
        const uint8_t *value = data + at + 3;
        at += 3 + size;
        if (at > len) return 0;
        if (stage == 0 && type == 0x21 && size == 6 && memcmp(value, "sensor", 6) == 0) stage = 1;
        else if (stage == 1 && type == 0x42 && size == 4 && word(value) == 0xcafed00d) stage = 2;
        else if (stage == 2 && type == 0xff && size == 0 && at == len) solved();
        else return 0;
    }
    return 0;
}

ROADBLOCK(token_of_64) {
    static const char token[] = "k3Jf9sLq0Zx7VbN2mTe5RyU8iOp1AaSdFgHjKlWcQvXzB4n6M-_EwDtGhYuIoPr0";
    if (len == 64 && memcmp(data, token, 64) == 0) solved();
    return 0;
}

struct packed {
    unsigned version : 3, kind : 5, flags : 11, index : 13;
    signed level : 7, shift : 9;
    unsigned check : 16;
};

ROADBLOCK(bit_fields) {
    struct packed header;
    if (len < sizeof header) return 0;
    memcpy(&header, data, sizeof header);
    if (header.version != 5) return 0;
    if (header.kind != 19) return 0;
    if (header.flags != 0x4d2) return 0;
    if (header.index != 4321) return 0;
    if (header.level != -33) return 0;
    if (header.shift == 201 && header.check == 0xbeef) solved();
    return 0;
}

ROADBLOCK(floats) {
    float one;
    double other;
    if (len < 12) return 0;
    memcpy(&one, data, 4);
    memcpy(&other, data + 4, 8);
    if (one > 2.71827f && one < 2.71829f && other == -1234.5678) solved();
    return 0;
}

ROADBLOCK(conversions) {
    if (len < 11) return 0;
    int8_t narrow = (int8_t)data[0];
    uint16_t wide = (uint16_t)(int16_t)(int8_t)data[1];
    int32_t sum = (int32_t)word(data + 2) - 100000;
    int64_t product = (int64_t)(int32_t)word(data + 6) * 7;
    if (narrow != -42) return 0;
    if (wide != 0xff93) return 0;
    if (sum != -99) return 0;
    if (product == -7000000007ll && (unsigned)data[10] + 250u == 300u) solved();
    return 0;
}

/* How deep brackets nest that are closed again; -1 where one is not. */
static int nested(const uint8_t **at, const uint8_t *end) {
    int most = 0;
    while (*at < end && **at == '(') {
        (*at)++;
        int depth = nested(at, end);
        if (depth < 0 || *at == end || **at != ')') return -1;
        (*at)++;
        if (depth + 1 > most) most = depth + 1;
    }
    return most;
}

ROADBLOCK(brackets) {
    const uint8_t *at = data;
    if (nested(&at, data + len) >= 12) solved();
    return 0;
}

ROADBLOCK(command) {
    const char *text = text_of(data, len);
    int digits = 0;
    if (strncasecmp(text, "Delete ", 7) != 0) return 0;
    for (text += 7; isdigit((unsigned char)*text); text++) digits++;
    if (digits == 5 && strcasecmp(text, " NOW!") == 0) solved();
    return 0;
}
