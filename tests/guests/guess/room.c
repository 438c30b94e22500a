/* It has an allocator that it does not export; what is called so is none. */
#include <stdlib.h>

#define EXPORT(name) __attribute__((export_name(#name)))

static void *volatile kept;

EXPORT(alloc) double alloc(double number) { return number; }
EXPORT(keep) int keep(const char *text) { kept = malloc(5); return text[0]; }
