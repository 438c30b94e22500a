// A stream of documents, parsed and written again, event by event.
#include "yaml.h"

#include <stddef.h>
#include <stdint.h>

#define EVENTS_MAX 10000

static int drop(void *data, unsigned char *buffer, size_t size) {
    (void)data;
    (void)buffer;
    (void)size;
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    yaml_parser_t parser;
    yaml_emitter_t emitter;
    if (!yaml_parser_initialize(&parser)) {
        return 0;
    }
    if (!yaml_emitter_initialize(&emitter)) {
        yaml_parser_delete(&parser);
        return 0;
    }
    yaml_parser_set_input_string(&parser, data, size);
    yaml_emitter_set_output(&emitter, drop, NULL);
    for (int events = 0; events < EVENTS_MAX; events++) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            break;
        }
        int is_end = event.type == YAML_STREAM_END_EVENT;
        // It takes the event.
        if (!yaml_emitter_emit(&emitter, &event) || is_end) {
            break;
        }
    }
    yaml_emitter_delete(&emitter);
    yaml_parser_delete(&parser);
    return 0;
}
