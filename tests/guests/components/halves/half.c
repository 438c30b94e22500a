#include "half.h"

#include <assert.h>

__attribute__((noinline)) static uint32_t halved(uint32_t number) {
    assert(number < 1000);
    return number / 2;
}

uint32_t exports_test_halves_halving_half(uint32_t number) {
    return number ? halved(number) : 0;
}
