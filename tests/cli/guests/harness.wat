(module
  (@custom "spelunk:harness" "harness bank::Bank\0a")
  (func (export "rule:add") (param i32)
    (if (i32.gt_u (local.get 0) (i32.const 9)) (then unreachable))))
