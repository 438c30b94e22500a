(module (func (export "take") (param externref)))
