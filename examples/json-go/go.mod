module examples/json-go

go 1.24

require spelunk v0.0.0

replace spelunk => ../../guest-sdk/go
