/* A queue of messages in a ring of bytes, as between two processors that share memory. */

#ifndef RING_H
#define RING_H

#include <stdint.h>

#define RING_LEN 16

/* A message is a byte with its length, which is not 0, and its bytes, all in one piece. Where the next message does not fit
   before the end of the ring, a 0 says that it is at the start. */
struct ring {
    uint8_t bytes[RING_LEN];
    /* The oldest message. */
    uint32_t head;
    /* Where the next message goes. Equal to `head` if there is no message. */
    uint32_t tail;
};

int ring_is_empty(const struct ring *ring);

/* 0, or -1 if the ring has no room now. */
int ring_push(struct ring *ring, const uint8_t *message, uint32_t len);

/* Takes the oldest message, which must be there, into `message`. Its length. */
uint32_t ring_pop(struct ring *ring, uint8_t *message);

#endif
