;; Changes three places of its 4 MiB in a step.
(module (memory 64 64)
  (func (export "rule:fill") (local i32)
    (loop
      (i32.store (local.get 0) (i32.mul (i32.shr_u (local.get 0) (i32.const 5)) (i32.const 2654435761)))
      (br_if 0 (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 8))) (i32.const 4194304)))))
  (func (export "rule:change") (param i32 i32 i32)
    (i32.store (i32.and (local.get 0) (i32.const 4194300)) (local.get 1))
    (i32.store (i32.and (local.get 1) (i32.const 4194300)) (local.get 2))
    (i32.store (i32.and (local.get 2) (i32.const 4194300)) (local.get 0))))
