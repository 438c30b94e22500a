"""The functions of the world, which componentize-py looks for in this module."""

import store
from componentize_py_types import Err
from wit_world import WitWorld as World
from wit_world import exports


class WitWorld(World):
    def invariant_content(self) -> None:
        if not all(bucket.is_right() for bucket in store.buckets):
            raise Err("a bucket holds what was not put into it")


class Store(exports.Store):
    def close(self, bucket: store.Bucket) -> list[tuple[str, bytes]]:
        return [(key, bucket.get(key)) for key in sorted(bucket.values)]
