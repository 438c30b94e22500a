// The imports, as they are.

// @ts-ignore: decorator
@external("spelunk", "boolean")
export declare function boolean(probability: f64): i32;
// @ts-ignore: decorator
@external("spelunk", "index")
export declare function index(n: i32): i32;
// @ts-ignore: decorator
@external("spelunk", "integer")
export declare function integer(min: i64, max: i64, simplest: i64): i64;
// @ts-ignore: decorator
@external("spelunk", "unsigned")
export declare function unsigned(min: u64, max: u64, simplest: u64): u64;
// @ts-ignore: decorator
@external("spelunk", "float")
export declare function float(min: f64, max: f64, flags: i32): f64;
// @ts-ignore: decorator
@external("spelunk", "bytes")
export declare function bytes(at: usize, minLen: i32, maxLen: i32): i32;
// @ts-ignore: decorator
@external("spelunk", "span_begin")
export declare function span_begin(label: usize, labelLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "span_end")
export declare function span_end(discarded: i32): void;
// @ts-ignore: decorator
@external("spelunk", "reject")
export declare function reject(): void;
// @ts-ignore: decorator
@external("spelunk", "fail")
export declare function fail(message: usize, messageLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "unreachable")
export declare function never(name: usize, nameLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "always")
export declare function always(name: usize, nameLen: i32, condition: i32): void;
// @ts-ignore: decorator
@external("spelunk", "sometimes")
export declare function sometimes(name: usize, nameLen: i32, condition: i32): void;
// @ts-ignore: decorator
@external("spelunk", "reachable")
export declare function reachable(name: usize, nameLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "target")
export declare function target(score: f64, label: usize, labelLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "observe")
export declare function observe(number: i64, name: usize, nameLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "event")
export declare function event(text: usize, textLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "state")
export declare function state(at: usize, len: i32): void;
// @ts-ignore: decorator
@external("spelunk", "fault")
export declare function fault(name: usize, nameLen: i32): i32;
// @ts-ignore: decorator
@external("spelunk", "verbose")
export declare function verbose(): i32;
// @ts-ignore: decorator
@external("spelunk", "describe")
export declare function describe(name: usize, nameLen: i32, value: usize, valueLen: i32): void;
// @ts-ignore: decorator
@external("spelunk", "note")
export declare function note(text: usize, textLen: i32): void;
