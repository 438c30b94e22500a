/* A library whose functions say by their types how they are called. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(#name)))

enum color { RED, GREEN = 5, BLUE = -1 };
struct point { int x, y; };
typedef struct shop shop;
struct shop { int sold; };
struct cart { struct shop *shop; };

EXPORT(numbers) int numbers(enum color color, bool is_new, uint16_t port, signed char letter, double rate) {
    return color + is_new + port + letter + (int)rate;
}
EXPORT(text) int text(const char *text) { return (int)strlen(text); }
EXPORT(bytes) int bytes(const uint8_t *data, size_t data_len) { return data_len == 0 ? 0 : data[data_len - 1]; }
EXPORT(fill) void fill(void *to, uint32_t size) { memset(to, 1, size); }
EXPORT(written) int written(int64_t *sum, double *mean) { *sum = 1; *mean = 2; return 0; }
EXPORT(divided) int divided(int a, int b, int *result) { *result = a ^ b; return b != 0; }
EXPORT(shop_open) shop *shop_open(void) { return calloc(1, sizeof(shop)); }
EXPORT(shop_name) const char *shop_name(const shop *shop) { return shop->sold == 0 ? "new" : NULL; }
EXPORT(shop_close) void shop_close(shop *shop) { free(shop); }
EXPORT(cart_new) int cart_new(shop *shop, struct cart **out) {
    *out = malloc(sizeof(struct cart));
    if (*out == NULL) return -1;
    (*out)->shop = shop;
    return 0;
}
EXPORT(cart_buy) void cart_buy(struct cart *cart) { cart->shop->sold++; }
EXPORT(cart_grow) struct cart *cart_grow(struct cart *cart, int by) {
    struct cart *grown = realloc(cart, sizeof(struct cart) + (unsigned)by % 64);
    return grown;
}
EXPORT(cart_free) void cart_free(struct cart *cart) { free(cart); }

/* These their types do not explain. */
EXPORT(callback) int callback(int (*call)(int)) { return call(1); }
EXPORT(move) int move(struct point *point) { return point->x; }
EXPORT(sum) int sum(const int *numbers, size_t count) { return count == 0 ? 0 : numbers[count - 1]; }
EXPORT(upper) void upper(char *text) { text[0] = 'A'; }
EXPORT(by_value) int by_value(struct point point) { return point.x + point.y; }

EXPORT(hash) int hash(const char *text, int seed, size_t text_len) { return seed + text[text_len - 1]; }
EXPORT(digest) void digest(const uint8_t *data, size_t len, uint8_t *out) { memset(out, data[len - 1], 32); }
EXPORT(scale) void scale(double *matrix, int rows) { while (rows-- > 0) *matrix++ *= 2; }

EXPORT(malloc_) void *unused(size_t size) { return malloc(size); }
