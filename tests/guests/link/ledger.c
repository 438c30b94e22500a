/* A ledger that knows nothing of Spelunk. The planted bug: an average of no entries. */

#include <stdlib.h>

typedef struct entry {
    struct entry *before;
    int amount;
} entry;

typedef struct ledger {
    entry *last;
    int entries_len;
} ledger;

ledger *ledger_open(void) { return calloc(1, sizeof(ledger)); }

int ledger_add(ledger *ledger, int amount) {
    entry *added = malloc(sizeof *added);
    if (!added) {
        return -1;
    }
    *added = (entry){.before = ledger->last, .amount = amount};
    ledger->last = added;
    ledger->entries_len++;
    return 0;
}

void ledger_undo(ledger *ledger) {
    entry *last = ledger->last;
    if (last) {
        ledger->last = last->before;
        ledger->entries_len--;
        free(last);
    }
}

static __attribute__((noinline)) int divided(int sum, int by) {
    return sum / by;
}

int ledger_average(ledger *ledger) {
    int sum = 0;
    for (entry *at = ledger->last; at; at = at->before) {
        sum += at->amount;
    }
    return divided(sum, ledger->entries_len);
}
