(module
  (func (export "rule:rest") (i32.const)))
