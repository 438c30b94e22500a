#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, WORD, OTHER };

static int depth;

static enum kind kind_of(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return NUMBER;
    }
    if ((byte >= 'a' && byte <= 'z') || byte == '_') {
        return WORD;
    }
    return OTHER;
}

static int number(const uint8_t *data, size_t size, size_t *at) {
    int value = 0;
    while (*at < size && kind_of(data[*at]) == NUMBER) {
        value = value * 10 + (data[*at] - '0');
        (*at)++;
    }
    return value;
}

static void word(const uint8_t *data, size_t size, size_t *at) {
    char text[8];
    size_t length = 0;
    do {
        text[length] = (char)data[*at];
        length++;
        (*at)++;
    } while (length < sizeof text - 1 && *at < size && kind_of(data[*at]) == WORD);
    text[length] = 0;
    switch (text[0]) {
    case 'a':
        depth += 1;
        break;
    case 'b':
        depth -= 1;
        break;
    case 'z':
        if (strcmp(text, "zzz") == 0) {
            abort();
        }
        break;
    default:
        depth += 0;
    }
}

int never(int x) {
    return x + 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t at = 0;
    depth = 0;
    for (size_t round = 0; at < size; round++) {
        switch (kind_of(data[at])) {
        case NUMBER:
            if (number(data, size, &at) > 99) {
                return 0;
            }
            break;
        case WORD:
            word(data, size, &at);
            break;
        default:
            at++;
            continue;
        }
        if (depth > 3) {
            depth = never(depth);
        }
    }
    return 0;
}
