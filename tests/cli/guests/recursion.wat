(module (func $descend (export "rule:descend") (call $descend)))
