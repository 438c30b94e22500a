#include "whole.h"

__attribute__((noinline)) static uint32_t rest(uint32_t number) {
    uint32_t half = test_halves_halving_half(number + 1);
    return number - half;
}

uint32_t exports_whole_check(uint32_t number) {
    return number + rest(number);
}
