// A key-value store with transactions, which are undone by a log.

/** What a key held before it was changed. */
class Change {
  constructor(
    readonly key: string,
    readonly wasThere: bool,
    readonly value: i32,
  ) {}
}

export class Store {
  private values: Map<string, i32> = new Map();
  /** The changes of the transaction that is open, the oldest first. */
  private log: Change[] = [];
  private isOpen: bool = false;

  get keys(): string[] {
    return this.values.keys();
  }

  has(key: string): bool {
    return this.values.has(key);
  }

  get(key: string): i32 {
    return this.values.get(key);
  }

  put(key: string, value: i32): void {
    this.remember(key);
    this.values.set(key, value);
  }

  remove(key: string): void {
    this.remember(key);
    this.values.delete(key);
  }

  begin(): void {
    this.isOpen = true;
  }

  commit(): void {
    this.isOpen = false;
    this.log = [];
  }

  /** Makes everything what it was at `begin`. */
  rollback(): void {
    // The bug: the log is undone from its oldest change on, so a key that was changed twice gets the value between the two.
    for (let i = 0; i < this.log.length; i++) {
      const change = this.log[i];
      if (change.wasThere) {
        this.values.set(change.key, change.value);
      } else {
        this.values.delete(change.key);
      }
    }
    this.commit();
  }

  private remember(key: string): void {
    if (!this.isOpen) return;
    const wasThere = this.values.has(key);
    this.log.push(new Change(key, wasThere, wasThere ? this.values.get(key) : 0));
  }
}
