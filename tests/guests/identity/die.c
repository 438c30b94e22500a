// Two bugs that both end in a `die` which nobody declared to be one.
#include <stdio.h>
#include <stdlib.h>

static int ones, twos;

__attribute__((noinline)) static void die(const char *what) {
    fprintf(stderr, "fatal: %s\n", what);
    exit(1);
}

__attribute__((export_name("one"))) void one(void) {
    if (++ones == 2) die("it went wrong");
}

__attribute__((export_name("two"))) void two(void) {
    if (++twos == 2) die("it went wrong");
}
