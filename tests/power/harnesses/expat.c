// A document, parsed at once, with namespaces and with handlers that read what they are given.
#include "expat.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Entities may stand for exponentially long text.
#define TEXT_MAX (64 * 1024)

static XML_Parser parser;
static size_t text;

static void count(size_t bytes) {
    text += bytes;
    if (text > TEXT_MAX) {
        XML_StopParser(parser, XML_FALSE);
    }
}

static void start(void *data, const XML_Char *name, const XML_Char **attributes) {
    (void)data;
    count(strlen(name));
    for (; *attributes; attributes++) {
        count(strlen(*attributes));
    }
}

static void end(void *data, const XML_Char *name) {
    (void)data;
    count(strlen(name));
}

static void characters(void *data, const XML_Char *characters, int bytes) {
    (void)data;
    (void)characters;
    count((size_t)bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    text = 0;
    parser = XML_ParserCreateNS(NULL, '!');
    if (!parser) {
        return 0;
    }
    // Otherwise it is drawn from the clock.
    XML_SetHashSalt(parser, 1);
    XML_SetParamEntityParsing(parser, XML_PARAM_ENTITY_PARSING_ALWAYS);
    XML_SetElementHandler(parser, start, end);
    XML_SetCharacterDataHandler(parser, characters);
    XML_Parse(parser, (const char *)data, (int)size, 1);
    XML_ParserFree(parser);
    return 0;
}
