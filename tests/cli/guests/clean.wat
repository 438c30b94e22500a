(module (func (export "rule:rest")))
