// A stream of zlib or gzip, inflated into a buffer of bounded size.
#include "zlib.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OUTPUT_MAX (256 * 1024)

static unsigned char output[16 * 1024];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    // 32: the header says which of the two.
    if (inflateInit2(&stream, 15 + 32) != Z_OK) {
        return 0;
    }
    stream.next_in = (z_const Bytef *)data;
    stream.avail_in = (uInt)size;
    int result = Z_OK;
    while (result == Z_OK && stream.total_out < OUTPUT_MAX) {
        stream.next_out = output;
        stream.avail_out = sizeof output;
        result = inflate(&stream, Z_NO_FLUSH);
    }
    inflateEnd(&stream);
    return 0;
}
