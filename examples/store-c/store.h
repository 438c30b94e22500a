/* A small store of texts by keys. It knows nothing of Spelunk. */
#include <stddef.h>

typedef struct store store;

/* Opens a store; NULL if there is no memory. */
store *store_open(const char *name);

/* Puts a value under a key, which may hold any bytes; 0, or -1 if there is no memory. */
int store_put(store *store, const char *key, size_t key_len, const char *value);

/* The value under a key, or NULL. */
const char *store_get(store *store, const char *key, size_t key_len);

/* Whether the entries are as many as the store says. */
int store_verify(store *store);

/* Closes a store, which cannot be used any more. */
void store_close(store *store);
