// SQL for a database in memory, on a system that has no files, no clock and no randomness.
#include "sqlite3.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Calls of the progress handler, one for a hundred instructions of SQLite's machine.
#define PROGRESS_MAX 100

static int progress_count;

static int is_too_long(void *data) {
    (void)data;
    return ++progress_count > PROGRESS_MAX;
}

static int row(void *data, int columns, char **values, char **names) {
    (void)data;
    (void)columns;
    (void)values;
    (void)names;
    return 0;
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags) {
    (void)vfs;
    (void)name;
    (void)flags;
    (void)out_flags;
    file->pMethods = NULL;
    return SQLITE_CANTOPEN;
}

static int delete_file(sqlite3_vfs *vfs, const char *name, int syncs) {
    (void)vfs;
    (void)name;
    (void)syncs;
    return SQLITE_IOERR_DELETE;
}

static int access_file(sqlite3_vfs *vfs, const char *name, int flags, int *result) {
    (void)vfs;
    (void)name;
    (void)flags;
    *result = 0;
    return SQLITE_OK;
}

static int full_path(sqlite3_vfs *vfs, const char *name, int size, char *path) {
    (void)vfs;
    sqlite3_snprintf(size, path, "%s", name);
    return SQLITE_OK;
}

static int randomness(sqlite3_vfs *vfs, int size, char *bytes) {
    (void)vfs;
    memset(bytes, 7, (size_t)size);
    return size;
}

static int wait(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static int current_time(sqlite3_vfs *vfs, double *days) {
    (void)vfs;
    *days = 2460000.5;
    return SQLITE_OK;
}

int sqlite3_os_init(void) {
    static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = sizeof(sqlite3_file),
        .mxPathname = 256,
        .zName = "none",
        .xOpen = open_file,
        .xDelete = delete_file,
        .xAccess = access_file,
        .xFullPathname = full_path,
        .xRandomness = randomness,
        .xSleep = wait,
        .xCurrentTime = current_time,
    };
    return sqlite3_vfs_register(&vfs, 1);
}

int sqlite3_os_end(void) {
    return SQLITE_OK;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    return sqlite3_initialize();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sqlite3 *database;
    progress_count = 0;
    if (sqlite3_open(":memory:", &database) == SQLITE_OK) {
        // Numbers in the text may ask for very much.
        sqlite3_hard_heap_limit64(16 << 20);
        sqlite3_limit(database, SQLITE_LIMIT_LENGTH, 100000);
        sqlite3_progress_handler(database, 100, is_too_long, NULL);
        char *sql = sqlite3_mprintf("%.*s", (int)size, (const char *)data);
        if (sql) {
            sqlite3_exec(database, sql, row, NULL, NULL);
        }
        sqlite3_free(sql);
    }
    sqlite3_close(database);
    return 0;
}
