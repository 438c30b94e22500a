// Runs a fuzz target on all files in the folders that are named, and prints how many different edges they take, how many there
// are, and how many files ended the process. The target is compiled with `-fsanitize-coverage=trace-pc-guard`, and this file
// without.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define EDGES_MAX (1 << 20)
// Seconds that a file may take.
#define SECONDS_MAX 10

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

// What is left when a file ends the process.
struct shared {
    int next;
    uint8_t hit[EDGES_MAX];
};

static struct shared *shared;
static uint32_t edges;

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop) {
    for (uint32_t *guard = start; guard < stop && !*guard; guard++) {
        *guard = ++edges;
    }
    if (edges >= EDGES_MAX) {
        abort();
    }
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard) {
    if (shared) {
        shared->hit[*guard] = 1;
    }
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void run(const char *folder, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) {
        fail(path);
    }
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size + !size);
    if (!data || fread(data, 1, size, file) != size) {
        fail(path);
    }
    fclose(file);
    alarm(SECONDS_MAX);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int is_file(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

// How many files of a folder ended the process.
static int measure(const char *folder) {
    struct dirent **files;
    int ended = 0, count = scandir(folder, &files, is_file, alphasort);
    if (count < 0) {
        fail(folder);
    }
    shared->next = 0;
    // A file that ends the process ends a child; another child goes on behind it.
    while (shared->next < count) {
        pid_t child = fork();
        if (child < 0) {
            fail("fork");
        }
        if (child == 0) {
            if (LLVMFuzzerInitialize) {
                int argc = 0;
                char *none = NULL, **argv = &none;
                LLVMFuzzerInitialize(&argc, &argv);
            }
            while (shared->next < count) {
                run(folder, files[shared->next++]->d_name);
            }
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
            exit(1);
        }
        ended += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return ended;
}

int main(int argc, char **argv) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fail("mmap");
    }
    int ended = 0, hit = 0;
    for (int folder = 1; folder < argc; folder++) {
        ended += measure(argv[folder]);
    }
    for (uint32_t edge = 1; edge <= edges; edge++) {
        hit += shared->hit[edge];
    }
    printf("%d %u %d\n", hit, edges, ended);
    return 0;
}
