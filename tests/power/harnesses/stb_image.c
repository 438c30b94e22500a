// An image of any format that stb_image knows, if it is small.
#include <stddef.h>
#include <stdint.h>

#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS 1024
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.c>

#define PIXELS_MAX (64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    int width, height, channels;
    if (!stbi_info_from_memory(data, (int)size, &width, &height, &channels)) {
        return 0;
    }
    if ((long long)width * height > PIXELS_MAX) {
        return 0;
    }
    stbi_uc *image = stbi_load_from_memory(data, (int)size, &width, &height, &channels, 4);
    if (image) {
        stbi_image_free(image);
    }
    return 0;
}
