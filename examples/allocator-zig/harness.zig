//! The allocator, and a plain map of which units of its area are in use.

const spelunk = @import("spelunk");
const Allocator = @import("allocator.zig").Allocator;
const Block = @import("allocator.zig").Block;

pub const panic = spelunk.panic;

const area_len = 8;

var allocator: Allocator(area_len) = .init;
var is_used: [area_len]bool = @splat(false);
var allocated: [area_len]Block = undefined;
var allocated_len: usize = 0;

export fn rule_allocate() void {
    const len = spelunk.describe("len", spelunk.integer(usize, 1, area_len));
    const expected = firstFit(len);
    const found = if (allocator.allocate(len)) |block| block.start else null;
    spelunk.assertEqual(found, expected, @src());
    const start = found orelse return spelunk.note("there is no room", .{});

    @memset(is_used[start..][0..len], true);
    allocated[allocated_len] = .{ .start = start, .len = len };
    allocated_len += 1;
    spelunk.sometimes("everything is in use", firstFit(1) == null);
}

export fn precondition_release() bool {
    return allocated_len > 0;
}

export fn rule_release() void {
    const place = spelunk.index(allocated_len);
    const block = allocated[place];
    _ = spelunk.describe("start", block.start);
    _ = spelunk.describe("len", block.len);

    allocated_len -= 1;
    allocated[place] = allocated[allocated_len];
    @memset(is_used[block.start..block.end()], false);
    allocator.release(block);
}

/// The first unit after which, and with which, `len` units are free.
fn firstFit(len: usize) ?usize {
    var free_len: usize = 0;
    for (is_used, 1..) |used, end| {
        free_len = if (used) 0 else free_len + 1;
        if (free_len == len) return end - len;
    }
    return null;
}
