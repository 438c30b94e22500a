// Without debug information, the names alone say what its exports take.
#include <stddef.h>
#include <string.h>

#define EXPORT(name) extern "C++" __attribute__((export_name(#name)))

struct Shop {
    int carts;
};

namespace bank {

EXPORT(hash) unsigned hash(const unsigned char *data, size_t size, int seed) {
    unsigned hash = seed;
    for (size_t i = 0; i < size; i++) hash = hash * 31 + data[i];
    return hash;
}

EXPORT(same) bool same(const char *a, const char *b) { return strcmp(a, b) == 0; }

} // namespace bank

EXPORT(halves) void halves(int whole, double *half) { *half = whole / 2.0; }
EXPORT(swap) void swap(int &a, int &b) {
    int c = a;
    a = b;
    b = c;
}
EXPORT(carts) int carts(Shop *shop) { return shop->carts; }
EXPORT(add) long long add(long long a, unsigned short b) { return a + b; }
