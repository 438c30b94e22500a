// Two bugs that both call `abort`.
#include <stdlib.h>

static int ones, twos;

__attribute__((export_name("one"))) void one(void) {
    if (++ones == 2) abort();
}

__attribute__((export_name("two"))) void two(void) {
    if (++twos == 2) abort();
}
