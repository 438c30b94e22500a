//! A first-fit allocator of a fixed area, which keeps its free blocks in order and joins neighbours.

const std = @import("std");

pub const Block = struct {
    start: usize,
    len: usize,

    pub fn end(block: Block) usize {
        return block.start + block.len;
    }
};

pub fn Allocator(comptime area_len: usize) type {
    return struct {
        /// Free blocks, of which the first `free_len` count. No two of them touch, so there are never more.
        free: [area_len / 2 + 1]Block,
        free_len: usize,

        const Self = @This();

        /// With everything free.
        pub const init: Self = init: {
            var allocator: Self = .{ .free = undefined, .free_len = 1 };
            allocator.free[0] = .{ .start = 0, .len = area_len };
            break :init allocator;
        };

        /// The start of the first free block that is long enough is taken; null if there is none.
        pub fn allocate(self: *Self, len: usize) ?Block {
            for (self.free[0..self.free_len], 0..) |*block, place| {
                if (block.len < len) continue;
                const start = block.start;
                block.start += len;
                block.len -= len;
                if (block.len == 0) self.remove(place);
                return .{ .start = start, .len = len };
            }
            return null;
        }

        /// Gives back a block that was allocated.
        pub fn release(self: *Self, block: Block) void {
            var place: usize = 0;
            while (place < self.free_len and self.free[place].start < block.start) place += 1;
            const touches_previous = place > 0 and self.free[place - 1].end() == block.start;
            const touches_next = place < self.free_len and block.end() == self.free[place].start;

            if (touches_previous) {
                // The bug: where the block touches the next one too, the two are not joined.
                self.free[place - 1].len += block.len;
            } else if (touches_next) {
                self.free[place].start = block.start;
                self.free[place].len += block.len;
            } else {
                self.insert(place, block);
            }
        }

        fn insert(self: *Self, place: usize, block: Block) void {
            self.free_len += 1;
            const blocks = self.free[place..self.free_len];
            std.mem.copyBackwards(Block, blocks[1..], blocks[0 .. blocks.len - 1]);
            blocks[0] = block;
        }

        fn remove(self: *Self, place: usize) void {
            const blocks = self.free[place..self.free_len];
            std.mem.copyForwards(Block, blocks[0 .. blocks.len - 1], blocks[1..]);
            self.free_len -= 1;
        }
    };
}
