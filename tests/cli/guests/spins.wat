;; Does not come to an end as it starts.
(module (func $start (loop $again (br $again))) (start $start) (func (export "rule:a")))
