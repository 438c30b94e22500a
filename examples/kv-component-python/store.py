"""The store of kv-component in Python: a bucket remembers the order of its keys once it was asked for them."""

from bisect import insort
from weakref import WeakSet

from componentize_py_types import Err
from wit_world.exports import store
from wit_world.exports.store import Change, Error_EmptyKey, Error_TooLong

# Bytes of a value.
VALUE_MAX = 32


class Bucket(store.Bucket):
    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        # The keys in order, or None until they are asked for.
        self.ordered: list[str] | None = None
        buckets.add(self)

    def put(self, key: str, value: bytes) -> Change:
        if not key:
            raise Err(Error_EmptyKey())
        if len(value) > VALUE_MAX:
            raise Err(Error_TooLong(VALUE_MAX))
        is_there = key in self.values
        self.values[key] = value
        if is_there:
            return Change.REPLACED
        if self.ordered is not None:
            insort(self.ordered, key)
        return Change.ADDED

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def remove(self, key: str) -> Change:
        if self.values.pop(key, None) is None:
            return Change.NOTHING
        if self.ordered is not None:
            self.ordered.remove(key)
        return Change.REMOVED

    def fork(self) -> "Bucket":
        forked = Bucket()
        forked.values = dict(self.values)
        # The planted bug: the list is not copied, and a key that one of both adds is a key of the other too.
        forked.ordered = self.ordered
        return forked

    def merge(self, other: "Bucket") -> None:
        for key, value in other.values.items():
            self.put(key, value)

    def keys(self) -> list[str]:
        if self.ordered is None:
            self.ordered = sorted(self.values)
        return self.ordered

    def is_right(self) -> bool:
        return self.ordered is None or self.ordered == sorted(self.values)


# The buckets that there are.
buckets: WeakSet[Bucket] = WeakSet()
