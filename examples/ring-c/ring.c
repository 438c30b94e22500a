#include "ring.h"

int ring_is_empty(const struct ring *ring) { return ring->head == ring->tail; }

int ring_push(struct ring *ring, const uint8_t *message, uint32_t len) {
    uint32_t needed = 1 + len;
    if (ring->tail >= ring->head) {
        if (ring->tail + needed > RING_LEN) {
            /* The bug: a message that fits exactly makes `tail` equal to `head`, as if the ring were empty. It must be
               `needed >= ring->head`. */
            if (needed > ring->head) return -1;
            if (ring->tail < RING_LEN) ring->bytes[ring->tail] = 0;
            ring->tail = 0;
        }
    } else if (ring->tail + needed >= ring->head) {
        return -1;
    }
    ring->bytes[ring->tail] = (uint8_t)len;
    for (uint32_t i = 0; i < len; i++) ring->bytes[ring->tail + 1 + i] = message[i];
    ring->tail += needed;
    return 0;
}

uint32_t ring_pop(struct ring *ring, uint8_t *message) {
    if (ring->head == RING_LEN || ring->bytes[ring->head] == 0) ring->head = 0;
    uint32_t len = ring->bytes[ring->head];
    for (uint32_t i = 0; i < len; i++) message[i] = ring->bytes[ring->head + 1 + i];
    ring->head += 1 + len;
    return len;
}
