/* The ring, and a list of the messages that are in it. The bytes of a message are its number. */

#include "ring.h"
#include "spelunk.h"

#define LEN_MAX 5

static struct ring ring;

static struct {
    uint8_t number;
    uint8_t len;
} expected[RING_LEN];
static uint32_t expected_len;
static uint8_t pushed;

SPELUNK_PROPERTY("sometimes", "the ring is full");

void SPELUNK_EXPORT(rule_push)(void) {
    uint32_t len = (uint32_t)spelunk_describe("len", spelunk_integer(1, LEN_MAX, 1));
    uint8_t message[LEN_MAX];
    for (uint32_t i = 0; i < len; i++) message[i] = pushed;
    int is_full = ring_push(&ring, message, len);
    spelunk_sometimes("the ring is full", is_full);
    if (is_full) {
        spelunk_note("it is full");
        return;
    }
    expected[expected_len].number = pushed++;
    expected[expected_len++].len = (uint8_t)len;
}

int32_t SPELUNK_EXPORT(precondition_pop)(void) { return expected_len > 0; }

void SPELUNK_EXPORT(rule_pop)(void) {
    uint8_t message[RING_LEN];
    uint32_t len = ring_pop(&ring, message);
    SPELUNK_ASSERT(len == expected[0].len);
    for (uint32_t i = 0; i < len; i++) SPELUNK_ASSERT(message[i] == expected[0].number);
    expected_len--;
    for (uint32_t i = 0; i < expected_len; i++) expected[i] = expected[i + 1];
}

void SPELUNK_EXPORT(invariant_knows_whether_it_is_empty)(void) {
    SPELUNK_ASSERT(ring_is_empty(&ring) == (expected_len == 0));
}
