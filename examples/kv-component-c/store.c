/* The store of kv-component in C: buckets share a table with their forks until one of them changes. wit-bindgen generates kv.h and
   kv.c from ../kv-component/wit; README.md has the commands. */

#include "kv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a value. */
#define VALUE_MAX 32

typedef struct {
    kv_string_t key;
    kv_list_u8_t value;
} entry;

/* Entries in the order of their keys. */
typedef struct {
    size_t users, len, room;
    entry *entries;
} table;

struct exports_example_kv_store_bucket_t {
    table *table;
    /* What was put into it, to be compared. It is never shared. */
    table *sum;
    struct exports_example_kv_store_bucket_t *next;
};

typedef exports_example_kv_store_bucket_t bucket;
typedef exports_example_kv_store_own_bucket_t handle;
typedef exports_example_kv_store_change_t change;

/* The buckets that there are. */
static bucket *buckets;

/* Nothing is allocated for nothing: the generated functions would not free it. */
static void *allocated(size_t bytes) {
    void *memory = bytes ? malloc(bytes) : NULL;
    if (bytes && !memory) {
        abort();
    }
    return memory;
}

static kv_string_t copied(kv_string_t text) {
    return (kv_string_t){memcpy(allocated(text.len), text.ptr, text.len), text.len};
}

static kv_list_u8_t copied_bytes(kv_list_u8_t bytes) {
    return (kv_list_u8_t){memcpy(allocated(bytes.len), bytes.ptr, bytes.len), bytes.len};
}

static table *table_new(size_t room) {
    table *made = allocated(sizeof *made);
    *made = (table){1, 0, room, allocated(room * sizeof(entry))};
    return made;
}

static void entry_free(entry *at) {
    free(at->key.ptr);
    free(at->value.ptr);
}

static void release(table *table) {
    if (--table->users > 0) {
        return;
    }
    for (size_t i = 0; i < table->len; i++) {
        entry_free(&table->entries[i]);
    }
    free(table->entries);
    free(table);
}

/* A copy with the room that its entries need. */
static table *table_copied(const table *from) {
    table *copy = table_new(from->len);
    for (; copy->len < from->len; copy->len++) {
        const entry *at = &from->entries[copy->len];
        copy->entries[copy->len] = (entry){copied(at->key), copied_bytes(at->value)};
    }
    return copy;
}

/* A table that no other bucket shares. */
static table *own(table **shared) {
    if ((*shared)->users > 1) {
        table *copy = table_copied(*shared);
        release(*shared);
        *shared = copy;
    }
    return *shared;
}

/* Makes room for so many more entries. */
static void reserve(table *table, size_t more) {
    if (table->room - table->len >= more) {
        return;
    }
    table->room = table->len + more;
    table->entries = realloc(table->entries, table->room * sizeof(entry));
    if (!table->entries) {
        abort();
    }
}

static int compared(kv_string_t one, kv_string_t other) {
    int order = memcmp(one.ptr, other.ptr, one.len < other.len ? one.len : other.len);
    return order ? order : (one.len > other.len) - (one.len < other.len);
}

/* Where this key is, or belongs; whether it is there. */
static bool find(const table *table, kv_string_t key, size_t *at) {
    for (*at = 0; *at < table->len; ++*at) {
        int order = compared(table->entries[*at].key, key);
        if (order >= 0) {
            return order == 0;
        }
    }
    return false;
}

/* Puts a copy of this; there is room for it. */
static change put(table *table, kv_string_t key, kv_list_u8_t value) {
    size_t at;
    if (find(table, key, &at)) {
        free(table->entries[at].value.ptr);
        table->entries[at].value = copied_bytes(value);
        return EXPORTS_EXAMPLE_KV_STORE_CHANGE_REPLACED;
    }
    assert(table->len < table->room);
    memmove(&table->entries[at + 1], &table->entries[at], (table->len - at) * sizeof(entry));
    table->entries[at] = (entry){copied(key), copied_bytes(value)};
    table->len++;
    return EXPORTS_EXAMPLE_KV_STORE_CHANGE_ADDED;
}

static change removed(table *table, kv_string_t key) {
    size_t at;
    if (!find(table, key, &at)) {
        return EXPORTS_EXAMPLE_KV_STORE_CHANGE_NOTHING;
    }
    entry_free(&table->entries[at]);
    table->len--;
    memmove(&table->entries[at], &table->entries[at + 1], (table->len - at) * sizeof(entry));
    return EXPORTS_EXAMPLE_KV_STORE_CHANGE_REMOVED;
}

static bool is_equal(const table *one, const table *other) {
    bool is_equal = one->len == other->len;
    for (size_t i = 0; is_equal && i < one->len; i++) {
        const entry *at = &one->entries[i], *its = &other->entries[i];
        is_equal = compared(at->key, its->key) == 0 && at->value.len == its->value.len
            && memcmp(at->value.ptr, its->value.ptr, at->value.len) == 0;
    }
    return is_equal;
}

static handle bucket_of(table *table, const bucket *like) {
    bucket *made = allocated(sizeof *made);
    *made = (bucket){table, like ? table_copied(like->sum) : table_new(0), buckets};
    buckets = made;
    return exports_example_kv_store_bucket_new(made);
}

handle exports_example_kv_store_constructor_bucket(void) {
    return bucket_of(table_new(0), NULL);
}

void exports_example_kv_store_bucket_destructor(bucket *self) {
    bucket **link = &buckets;
    while (*link != self) {
        link = &(*link)->next;
    }
    *link = self->next;
    release(self->table);
    release(self->sum);
    free(self);
}

bool exports_example_kv_store_method_bucket_put(bucket *self, kv_string_t *key, kv_list_u8_t *value, change *ret,
                                                exports_example_kv_store_error_t *err) {
    bool is_put = false;
    if (key->len == 0) {
        err->tag = EXPORTS_EXAMPLE_KV_STORE_ERROR_EMPTY_KEY;
    } else if (value->len > VALUE_MAX) {
        err->tag = EXPORTS_EXAMPLE_KV_STORE_ERROR_TOO_LONG;
        err->val.too_long = VALUE_MAX;
    } else {
        reserve(own(&self->table), 1);
        reserve(self->sum, 1);
        put(self->sum, *key, *value);
        *ret = put(self->table, *key, *value);
        is_put = true;
    }
    kv_string_free(key);
    kv_list_u8_free(value);
    return is_put;
}

bool exports_example_kv_store_method_bucket_get(bucket *self, kv_string_t *key, kv_list_u8_t *ret) {
    size_t at;
    bool is_there = find(self->table, *key, &at);
    if (is_there) {
        *ret = copied_bytes(self->table->entries[at].value);
    }
    kv_string_free(key);
    return is_there;
}

change exports_example_kv_store_method_bucket_remove(bucket *self, kv_string_t *key) {
    removed(self->sum, *key);
    change change = removed(own(&self->table), *key);
    kv_string_free(key);
    return change;
}

handle exports_example_kv_store_method_bucket_fork(bucket *self) {
    self->table->users++;
    return bucket_of(self->table, self);
}

void exports_example_kv_store_method_bucket_merge(bucket *self, bucket *other) {
    const table *from = other->table;
    if (from == self->table) {
        return;
    }
    reserve(self->sum, from->len);
#ifdef FIXED
    reserve(own(&self->table), from->len);
#else
    /* The planted bug: the room is made in the table that a fork still shares. The copy has none. */
    reserve(self->table, from->len);
#endif
    for (size_t i = 0; i < from->len; i++) {
        put(self->sum, from->entries[i].key, from->entries[i].value);
        put(own(&self->table), from->entries[i].key, from->entries[i].value);
    }
}

void exports_example_kv_store_method_bucket_keys(bucket *self, kv_list_string_t *ret) {
    *ret = (kv_list_string_t){allocated(self->table->len * sizeof *ret->ptr), self->table->len};
    for (size_t i = 0; i < ret->len; i++) {
        ret->ptr[i] = copied(self->table->entries[i].key);
    }
}

void exports_example_kv_store_close(handle bucket, kv_list_tuple2_string_list_u8_t *ret) {
    const table *table = exports_example_kv_store_bucket_rep(bucket)->table;
    *ret = (kv_list_tuple2_string_list_u8_t){allocated(table->len * sizeof *ret->ptr), table->len};
    for (size_t i = 0; i < ret->len; i++) {
        ret->ptr[i].f0 = copied(table->entries[i].key);
        ret->ptr[i].f1 = copied_bytes(table->entries[i].value);
    }
    exports_example_kv_store_bucket_drop_own(bucket);
}

bool exports_kv_invariant_content(kv_string_t *err) {
    for (const bucket *at = buckets; at; at = at->next) {
        if (!is_equal(at->table, at->sum)) {
            kv_string_dup(err, "a bucket holds what was not put into it");
            return false;
        }
    }
    return true;
}
