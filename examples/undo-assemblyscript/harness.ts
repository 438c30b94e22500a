// The store, and two maps: what it must hold, and what it held when the transaction began.

import { describe, integer, sampled } from "../../guest-sdk/assemblyscript";
import { Store } from "./store";

const KEYS = ["a", "b", "c"];

const store = new Store();
let expected = new Map<string, i32>();
let before: Map<string, i32> | null = null;

export function rule_put(): void {
  const key = describe("key", sampled(KEYS));
  const value = describe("value", integer<i32>(0, 9));
  store.put(key, value);
  expected.set(key, value);
}

export function precondition_remove(): bool {
  return expected.size > 0;
}

export function rule_remove(): void {
  const key = describe("key", sampled(expected.keys()));
  store.remove(key);
  expected.delete(key);
}

export function precondition_begin(): bool {
  return before === null;
}

export function rule_begin(): void {
  store.begin();
  before = copy(expected);
}

export function precondition_commit(): bool {
  return before !== null;
}

export function rule_commit(): void {
  store.commit();
  before = null;
}

export function precondition_rollback(): bool {
  return before !== null;
}

export function rule_rollback(): void {
  store.rollback();
  expected = before!;
  before = null;
}

export function invariant_holds_what_was_put(): void {
  for (let i = 0; i < KEYS.length; i++) {
    const key = KEYS[i];
    const found = store.has(key) ? store.get(key) : NOTHING;
    const wanted = expected.has(key) ? expected.get(key) : NOTHING;
    assert(found == wanted, `${key} is ${shown(found)}, expected ${shown(wanted)}`);
  }
}

/** In place of the value of a key that is not there. */
const NOTHING = -1;

function shown(value: i32): string {
  return value == NOTHING ? "not there" : value.toString();
}

function copy(map: Map<string, i32>): Map<string, i32> {
  const copied = new Map<string, i32>();
  const keys = map.keys();
  for (let i = 0; i < keys.length; i++) copied.set(keys[i], map.get(keys[i]));
  return copied;
}
