;; Traps before there is anything to explore.
(module (func $begin unreachable) (start $begin) (func (export "rule:rest")))
