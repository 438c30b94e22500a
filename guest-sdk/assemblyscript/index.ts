// Spelunk for guests in AssemblyScript: the imports of ABI.md, as functions of its types. README.md says how to build.
//
// An exported function of the main file is an export of the guest: `rule_NAME`, `precondition_NAME`, `invariant_NAME`,
// `fault_NAME`, `setup`, `teardown`, `check` or `state`. The built-in `assert` is a finding, by the import `env.abort`.

import * as host from "./abi";

/** Either way; false is the simplest. */
export function flip(): bool {
  return boolean(0.5);
}

/** True with this probability; false is the simplest. */
export function boolean(probability: f64): bool {
  return host.boolean(probability) != 0;
}

/** One of 0..n, without n; 0 is the simplest. With n = 0 the run ends as a deadlock. */
export function index(n: i32): i32 {
  return host.index(n);
}

/** In min..=max, of any type of integers; the simplest is 0, or the bound nearest to it. */
export function integer<T>(min: T, max: T): T {
  if (isSigned<T>()) {
    return <T>host.integer(<i64>min, <i64>max, 0);
  }
  return <T>host.unsigned(<u64>min, <u64>max, 0);
}

/** In min..=max and finite; the simplest is 0, or the bound nearest to it. */
export function float(min: f64, max: f64): f64 {
  return host.float(min, max, 0);
}

/** Any float, NaN and infinities too. */
export function anyFloat(): f64 {
  return host.float(-Infinity, Infinity, 3);
}

/** At least min and at most max; few and zeros are the simplest. */
export function bytes(min: i32, max: i32): Uint8Array {
  const drawn = new Uint8Array(max);
  return drawn.subarray(0, host.bytes(drawn.dataStart, min, max));
}

/** One of the items; the first is the simplest. */
export function sampled<T>(items: Array<T>): T {
  return items[index(items.length)];
}

/** The following choices belong together, up to `spanEnd`. */
export function spanBegin(): void {
  host.span_begin(0, 0);
}

/** Closes the innermost span; `discarded` says that nothing came of its choices. */
export function spanEnd(discarded: bool = false): void {
  host.span_end(discarded);
}

/** Gives up a run that does not count, unless the condition holds. */
export function assume(condition: bool): void {
  if (!condition) host.reject();
}

/** Ends the run as a finding. */
export function fail(message: string): void {
  host.fail(FIRST, put(message, FIRST));
}

/** The condition holds wherever this is reached; where it does not, the run ends as a finding. */
export function always(name: string, condition: bool): void {
  host.always(FIRST, put(name, FIRST), condition);
}

/** The condition is expected to hold at least once. */
export function sometimes(name: string, condition: bool): void {
  host.sometimes(FIRST, put(name, FIRST), condition);
}

/** This is expected to be reached at least once. */
export function reachable(name: string): void {
  host.reachable(FIRST, put(name, FIRST));
}

/** Ends the run as a finding: this must never be reached. */
export function never(name: string): void {
  host.never(FIRST, put(name, FIRST));
}

/** The exploration prefers what raises the highest score of this label. */
export function target(score: f64, label: string = ""): void {
  host.target(score, FIRST, put(label, FIRST));
}

/** The exploration goes on from where a number is observed first under this name. */
export function observe(name: string, number: i64): void {
  host.observe(number, FIRST, put(name, FIRST));
}

/** Counted; the report says how often each event happened. */
export function event(text: string): void {
  host.event(FIRST, put(text, FIRST));
}

/** More bytes of what is compared in place of the memory. Only in the export `state`. */
export function state(part: Uint8Array): void {
  host.state(part.dataStart, part.length);
}

/** Whether this fault is on. The export `fault_NAME` declares it. */
export function fault(name: string): bool {
  return host.fault(FIRST, put(name, FIRST)) != 0;
}

/** Whether a finding is being reported, so that it pays to format. */
export function verbose(): bool {
  return host.verbose() != 0;
}

/** The argument `name` of this step has this value, which is returned: `describe("n", integer(1, 9))`. */
export function describe<T>(name: string, value: T): T {
  if (verbose()) {
    const shown = isString<T>() ? '"' + value.toString() + '"' : value.toString();
    host.describe(FIRST, put(name, FIRST), SECOND, put(shown, SECOND));
  }
  return value;
}

/** A line below the step. Where it pays, ask first whether it is `verbose`. */
export function note(text: string): void {
  if (verbose()) host.note(FIRST, put(text, FIRST));
}

/** Two places where a text lies as UTF-8 while the host reads it, so that nothing is allocated. */
const FIRST = memory.data(3072);
const SECOND = memory.data(3072);

/** A character of UTF-16 is up to 3 bytes of UTF-8. What is longer is cut. */
const TEXT_LEN_MAX = 1024;

/** Writes a text to one of these places; its length in bytes. */
function put(text: string, place: usize): i32 {
  return <i32>String.UTF8.encodeUnsafe(changetype<usize>(text), min(text.length, TEXT_LEN_MAX), place);
}
