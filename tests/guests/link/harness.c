/* Explores ledger.c as a module of its own. */

#include "spelunk.h"

#define TARGET(name) __attribute__((import_module("target"), import_name(#name))) name

typedef struct ledger ledger;
ledger *TARGET(ledger_open)(void);
int TARGET(ledger_add)(ledger *ledger, int amount);
void TARGET(ledger_undo)(ledger *ledger);
int TARGET(ledger_average)(ledger *ledger);

enum { ENTRIES_MAX = 64 };

static ledger *opened;
static int amounts[ENTRIES_MAX];
static int amounts_len;
static int was_filled;

void SPELUNK_EXPORT(setup)(void) { opened = ledger_open(); }

int SPELUNK_EXPORT(precondition_add)(void) { return amounts_len < ENTRIES_MAX; }

void SPELUNK_EXPORT(rule_add)(void) {
    int amount = (int)spelunk_describe("amount", spelunk_integer(0, 9, 0));
    if (ledger_add(opened, amount) == 0) {
        amounts[amounts_len++] = amount;
        was_filled = 1;
    }
}

int SPELUNK_EXPORT(precondition_undo)(void) { return amounts_len > 0; }

void SPELUNK_EXPORT(rule_undo)(void) {
    ledger_undo(opened);
    amounts_len--;
}

int SPELUNK_EXPORT(precondition_average)(void) { return was_filled; }

void SPELUNK_EXPORT(rule_average)(void) {
    int sum = 0;
    for (int i = 0; i < amounts_len; i++) {
        sum += amounts[i];
    }
    int average = ledger_average(opened);
    if (average != sum / amounts_len) {
        spelunk_fail("another average");
    }
}
