// Two bugs that one assertion in a helper ends.
#include <assert.h>
#include <stdlib.h>

static int ones, twos;

__attribute__((noinline, noreturn)) static void never(void) {
    assert(!"reached");
    abort();
}

__attribute__((export_name("one"))) void one(void) {
    if (++ones == 2) never();
}

__attribute__((export_name("two"))) void two(void) {
    if (++twos == 2) never();
}
