// A table of squares that remembers the last one that was looked up. With STALE it does not forget that when it changes.
static int values[4] = {0, 1, 4, 9};
static int last = -1, remembered;

int get(unsigned at) {
#ifdef STRICT
    if (at > 3) __builtin_trap();
#endif
    if ((int)(at % 4) == last) return remembered;
    last = (int)(at % 4);
    return remembered = values[at % 4];
}

void set(unsigned at, int value) {
    values[at % 4] = value;
#ifndef STALE
    last = -1;
#endif
}

#ifdef LOGS
#include <stdio.h>
int main(int count, char **arguments) {
    int sum = 0, c;
    while ((c = getchar()) != EOF) {
        // One version takes a digit for a letter.
        if (c >= '0' && c <= LOGS) sum += c - '0';
        else if (c >= 'a' && c <= 'z') sum += 10;
    }
    printf("%d\n", sum);
    return sum > 99;
}
#endif
