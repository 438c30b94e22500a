// Two bugs that panic in one helper.
var ones: u32 = 0;
var twos: u32 = 0;

noinline fn oops(number: u32) noreturn {
    if (number == 7) @panic("seven");
    @panic("not seven");
}

export fn one() void {
    ones += 1;
    if (ones == 2) oops(ones);
}

export fn two() void {
    twos += 1;
    if (twos == 2) oops(twos);
}
