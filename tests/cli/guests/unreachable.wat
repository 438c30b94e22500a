(module (func $fall (export "rule:fall") unreachable))
