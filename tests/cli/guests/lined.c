/* A queue of four numbers. lined.wasm is what `zig cc` makes of it, with --target=wasm32-freestanding -nostdlib -O0 -g
   -fno-sanitize=undefined -fdebug-compilation-dir=/src -Wl,--no-entry -Wl,--export=never. */

static int queue[4];
static int length;

static int is_full(void) {
    return length == 4;
}

__attribute__((export_name("rule_push"))) void push(int number) {
    if (is_full()) {
        length = 0;
        return;
    }
    if (number > 10 && length > 2) {
        __builtin_trap();
    }
    queue[length] = number;
    length++;
}

__attribute__((export_name("rule_pop"))) int pop(void) {
    switch (length) {
    case 0:
        return 0;
    case 9:
        return 9;
    default:
        length--;
        return queue[length];
    }
}

int never(int number) {
    return number + 1;
}
