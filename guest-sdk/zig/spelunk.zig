//! Spelunk for guests in Zig: the imports of ABI.md, as functions of slices. README.md says what each does and how to build.
//!
//! A function becomes an export by `export fn`: `rule_NAME`, `precondition_NAME`, `invariant_NAME`, `setup`, `teardown`,
//! `check` or `state`, or by `@export` for other names. The root file says `pub const panic = spelunk.panic;`, so that a
//! panic is reported with its message.

const std = @import("std");

const host = struct {
    extern "spelunk" fn boolean(probability: f64) i32;
    extern "spelunk" fn index(n: u32) u32;
    extern "spelunk" fn integer(min: i64, max: i64, simplest: i64) i64;
    extern "spelunk" fn unsigned(min: u64, max: u64, simplest: u64) u64;
    extern "spelunk" fn float(min: f64, max: f64, flags: i32) f64;
    extern "spelunk" fn bytes(at: [*]u8, min_len: usize, max_len: usize) usize;
    extern "spelunk" fn span_begin(label: [*]const u8, label_len: usize) void;
    extern "spelunk" fn span_end(discarded: i32) void;
    extern "spelunk" fn reject() noreturn;
    extern "spelunk" fn fail(message: [*]const u8, message_len: usize) noreturn;
    extern "spelunk" fn panic(
        message: [*]const u8,
        message_len: usize,
        file: [*]const u8,
        file_len: usize,
        line: u32,
        column: u32,
    ) noreturn;
    extern "spelunk" fn @"unreachable"(name: [*]const u8, name_len: usize) noreturn;
    extern "spelunk" fn always(name: [*]const u8, name_len: usize, condition: i32) void;
    extern "spelunk" fn sometimes(name: [*]const u8, name_len: usize, condition: i32) void;
    extern "spelunk" fn reachable(name: [*]const u8, name_len: usize) void;
    extern "spelunk" fn target(score: f64, label: [*]const u8, label_len: usize) void;
    extern "spelunk" fn observe(number: i64, name: [*]const u8, name_len: usize) void;
    extern "spelunk" fn event(text: [*]const u8, text_len: usize) void;
    extern "spelunk" fn state(at: [*]const u8, len: usize) void;
    extern "spelunk" fn fault(name: [*]const u8, name_len: usize) i32;
    extern "spelunk" fn verbose() i32;
    extern "spelunk" fn describe(name: [*]const u8, name_len: usize, value: [*]const u8, value_len: usize) void;
    extern "spelunk" fn note(text: [*]const u8, text_len: usize) void;
};

/// Either way; false is the simplest.
pub fn flip() bool {
    return boolean(0.5);
}

/// True with this probability; false is the simplest.
pub fn boolean(probability: f64) bool {
    return host.boolean(probability) != 0;
}

/// One of `0..n`; 0 is the simplest. With `n = 0` the run ends as a deadlock.
pub fn index(n: usize) usize {
    return host.index(@intCast(n));
}

/// In `min..=max`, of any type of up to 64 bits; the simplest is 0, or the bound nearest to it.
pub fn integer(comptime T: type, min: T, max: T) T {
    return switch (@typeInfo(T).int.signedness) {
        .signed => @intCast(host.integer(min, max, 0)),
        .unsigned => @intCast(host.unsigned(min, max, 0)),
    };
}

/// In `min..=max` and finite; the simplest is 0, or the bound nearest to it.
pub fn float(min: f64, max: f64) f64 {
    return host.float(min, max, 0);
}

/// Any float, NaN and infinities too.
pub fn anyFloat() f64 {
    return host.float(-std.math.inf(f64), std.math.inf(f64), 3);
}

/// Fills the start of `buffer` with at least `min_len` bytes, and returns it. Few and zeros are the simplest.
pub fn bytes(buffer: []u8, min_len: usize) []u8 {
    return buffer[0..host.bytes(buffer.ptr, min_len, buffer.len)];
}

/// An element of a slice or of a pointer to an array; the first is the simplest.
pub fn sampled(items: anytype) std.meta.Elem(@TypeOf(items)) {
    return items[index(items.len)];
}

/// The following choices belong together, up to `spanEnd`.
pub fn spanBegin(comptime label: []const u8) void {
    host.span_begin(label.ptr, label.len);
}

/// Closes the innermost span; `discarded` says that nothing came of its choices.
pub fn spanEnd(discarded: bool) void {
    host.span_end(@intFromBool(discarded));
}

/// Gives up a run that does not count, unless the condition holds.
pub fn assume(condition: bool) void {
    if (!condition) host.reject();
}

/// A finding, told apart from others by its place, unless the condition holds: `assert(a < b, @src())`.
pub fn assert(condition: bool, at: std.builtin.SourceLocation) void {
    if (!condition) panicAt("the assertion does not hold", at);
}

/// A finding with both values, unless they are equal.
pub fn assertEqual(found: anytype, expected: @TypeOf(found), at: std.builtin.SourceLocation) void {
    if (!std.meta.eql(found, expected)) {
        var buffer: [text_len_max]u8 = undefined;
        panicAt(print(&buffer, "found {any}, expected {any}", .{ found, expected }), at);
    }
}

/// Ends the run as a finding.
pub fn fail(comptime format: []const u8, arguments: anytype) noreturn {
    var buffer: [text_len_max]u8 = undefined;
    const message = print(&buffer, format, arguments);
    host.fail(message.ptr, message.len);
}

/// What panics do in a root file that says `pub const panic = spelunk.panic;`: they end the run as a finding.
pub const panic = std.debug.FullPanic(struct {
    fn report(message: []const u8, _: ?usize) noreturn {
        host.fail(message.ptr, message.len);
    }
}.report);

/// The condition holds wherever this is reached; where it does not, the run ends as a finding.
pub fn always(comptime name: []const u8, condition: bool) void {
    declareProperty("always " ++ name);
    host.always(name.ptr, name.len, @intFromBool(condition));
}

/// The condition is expected to hold at least once.
pub fn sometimes(comptime name: []const u8, condition: bool) void {
    declareProperty("sometimes " ++ name);
    host.sometimes(name.ptr, name.len, @intFromBool(condition));
}

/// This is expected to be reached at least once.
pub fn reachable(comptime name: []const u8) void {
    declareProperty("reachable " ++ name);
    host.reachable(name.ptr, name.len);
}

/// Ends the run as a finding: this must never be reached.
pub fn never(comptime name: []const u8) noreturn {
    declareProperty("unreachable " ++ name);
    host.@"unreachable"(name.ptr, name.len);
}

/// The exploration prefers what raises the highest score of this label.
pub fn target(score: f64, label: []const u8) void {
    host.target(score, label.ptr, label.len);
}

/// The exploration goes on from where a number is observed first under this name.
pub fn observe(name: []const u8, number: i64) void {
    host.observe(number, name.ptr, name.len);
}

/// Counted; the report says how often each event happened.
pub fn event(text: []const u8) void {
    host.event(text.ptr, text.len);
}

/// More bytes of what is compared in place of the memory. Only in the export `state`.
pub fn state(part: []const u8) void {
    host.state(part.ptr, part.len);
}

/// Whether this fault is on. Declares it too.
pub fn fault(comptime name: []const u8) bool {
    _ = struct {
        fn toggle(_: i32) callconv(.c) void {}
        comptime {
            @export(&toggle, .{ .name = "fault:" ++ name });
        }
    };
    return host.fault(name.ptr, name.len) != 0;
}

/// Whether a finding is being reported, so that it pays to format.
pub fn verbose() bool {
    return host.verbose() != 0;
}

/// The argument `name` of this step has this value, which is returned: `describe("n", integer(u8, 1, 9))`.
pub fn describe(comptime name: []const u8, value: anytype) @TypeOf(value) {
    if (verbose()) {
        var buffer: [text_len_max]u8 = undefined;
        const is_text = @TypeOf(value) == []const u8 or @TypeOf(value) == []u8;
        const shown = print(&buffer, if (is_text) "\"{s}\"" else "{any}", .{value});
        host.describe(name.ptr, name.len, shown.ptr, shown.len);
    }
    return value;
}

/// A line below the step.
pub fn note(comptime format: []const u8, arguments: anytype) void {
    if (verbose()) {
        var buffer: [text_len_max]u8 = undefined;
        const text = print(&buffer, format, arguments);
        host.note(text.ptr, text.len);
    }
}

/// Longer texts are cut.
const text_len_max = 1024;

fn print(buffer: []u8, comptime format: []const u8, arguments: anytype) []const u8 {
    var writer: std.Io.Writer = .fixed(buffer);
    writer.print(format, arguments) catch {};
    return writer.buffered();
}

fn panicAt(message: []const u8, at: std.builtin.SourceLocation) noreturn {
    host.panic(message.ptr, message.len, at.file.ptr, at.file.len, at.line, at.column);
}

/// A line of the section that declares properties, so that one that is never reached is reported.
fn declareProperty(comptime line: []const u8) void {
    _ = struct {
        comptime {
            asm (".section \".custom_section.spelunk:properties\",\"\",@\n.ascii \"" ++ line ++ "\\n\"\n.text\n");
        }
    };
}
