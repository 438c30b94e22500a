(module (func $begin (export "setup") unreachable) (func (export "rule:rest")))
