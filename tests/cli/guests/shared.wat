(module (memory 1 1 shared) (func (export "rule:rest")))
