/* parse.c as a program that reads files. The last of them may abort. */

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __gcov_dump(void);

/* Nothing is written by a program that aborts. */
static void aborted(int signal) {
    (void)signal;
    __gcov_dump();
    _exit(0);
}

int main(int count, char **paths) {
    static uint8_t bytes[1 << 12];
    signal(SIGABRT, aborted);
    for (int at = 1; at < count; at++) {
        FILE *file = fopen(paths[at], "rb");
        if (!file) {
            return 1;
        }
        size_t size = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        LLVMFuzzerTestOneInput(bytes, size);
    }
    return 0;
}
