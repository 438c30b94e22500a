/* The deserialiser of an order, and a stream that fails at every call in turn.

   With FIXED the error of the last read is not dropped. */

#include "spelunk.h"

/* The product. */

struct stream {
    const uint8_t *bytes;
    int has_failed;
};

struct order {
    uint8_t quantity;
    uint8_t is_anonymous;
    uint8_t name[8];
};

/* 0, or -1 if the stream broke; then it must not be read any more. */
static int stream_read(struct stream *stream, uint8_t *buffer, uint32_t len);

static int order_deserialize(struct stream *stream, struct order *order) {
    if (stream_read(stream, &order->quantity, 1)) return -1;
    if (stream_read(stream, &order->is_anonymous, 1)) return -1;
    if (!order->is_anonymous) {
        int error = stream_read(stream, order->name, sizeof order->name);
#ifdef FIXED
        if (error) return -1;
#else
        /* The bug: the error of the last read is dropped. */
        (void)error;
#endif
    }
    return 0;
}

/* The test. */

static int stream_read(struct stream *stream, uint8_t *buffer, uint32_t len) {
    SPELUNK_ASSERT(!stream->has_failed);
    stream->has_failed = spelunk_flip();
    if (stream->has_failed) {
        spelunk_note(len > 1 ? "the read of the name fails" : "a read of one byte fails");
        return -1;
    }
    for (uint32_t i = 0; i < len; i++) buffer[i] = *stream->bytes++;
    return 0;
}

void SPELUNK_EXPORT(check)(void) {
    static const uint8_t named[] = {3, 0, 'L', 'o', 'v', 'e', 'l', 'a', 'c', 'e'};
    static const uint8_t anonymous[] = {3, 1};
    struct stream stream = {spelunk_flip() ? anonymous : named, 0};
    struct order order = {0};
    int error = order_deserialize(&stream, &order);
    if (!error && stream.has_failed) spelunk_fail("a read failed, and there is an order");
}
