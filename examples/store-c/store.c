#include "store.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *next;
    char *value;
    size_t key_len;
    char key[];
} entry;

struct store {
    size_t entries_len;
    entry *first;
    char *name;
};

static char *copied(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

static entry *find(store *store, const char *key, size_t key_len) {
    entry *at = store->first;
    while (at && (at->key_len != key_len || memcmp(at->key, key, key_len) != 0)) {
        at = at->next;
    }
    return at;
}

store *store_open(const char *name) {
    store *store = calloc(1, sizeof *store);
    if (store) {
        store->name = copied(name);
    }
    return store;
}

int store_put(store *store, const char *key, size_t key_len, const char *value) {
    char *copy = copied(value);
    entry *at = find(store, key, key_len);
    if (!copy) {
        return -1;
    }
    if (!at) {
        at = calloc(1, sizeof *at + key_len);
        if (!at) {
            free(copy);
            return -1;
        }
        memcpy(at->key, key, key_len);
        at->key_len = key_len;
        at->next = store->first;
        store->first = at;
    }
    /* The planted bug: an entry that was there already is counted again. */
    store->entries_len++;
    free(at->value);
    at->value = copy;
    return 0;
}

const char *store_get(store *store, const char *key, size_t key_len) {
    entry *at = find(store, key, key_len);
    return at ? at->value : NULL;
}

int store_verify(store *store) {
    size_t len = 0;
    for (entry *at = store->first; at; at = at->next) {
        len++;
    }
    return len == store->entries_len;
}

void store_close(store *store) {
    for (entry *at = store->first; at;) {
        entry *next = at->next;
        free(at->value);
        free(at);
        at = next;
    }
    free(store->name);
    free(store);
}
