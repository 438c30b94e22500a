(module (func (export "__spelunk_run")) (func (export "rule:rest")))
