(module (func $spin (export "rule:spin") (loop (br 0))))
