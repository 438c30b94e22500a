package spelunk

import "unsafe"

//go:wasmimport spelunk boolean
func boolean(probability float64) int32

//go:wasmimport spelunk index
func index(n uint32) uint32

//go:wasmimport spelunk integer
func integer(min, max, simplest int64) int64

//go:wasmimport spelunk unsigned
func unsigned(min, max, simplest uint64) uint64

//go:wasmimport spelunk float
func float(min, max float64, flags int32) float64

//go:wasmimport spelunk bytes
func bytes(at unsafe.Pointer, minLen, maxLen uint32) uint32

//go:wasmimport spelunk span_begin
func spanBegin(label string)

//go:wasmimport spelunk span_end
func spanEnd(discarded int32)

//go:wasmimport spelunk reject
func reject()

//go:wasmimport spelunk fail
func fail(message string)

//go:wasmimport spelunk panic
func panicAt(message, file string, line, column uint32)

//go:wasmimport spelunk unreachable
func never(name string)

//go:wasmimport spelunk always
func always(name string, condition int32)

//go:wasmimport spelunk sometimes
func sometimes(name string, condition int32)

//go:wasmimport spelunk reachable
func reachable(name string)

//go:wasmimport spelunk target
func target(score float64, label string)

//go:wasmimport spelunk observe
func observe(number int64, name string)

//go:wasmimport spelunk event
func event(text string)

//go:wasmimport spelunk state
func state(at unsafe.Pointer, len uint32)

//go:wasmimport spelunk fault
func fault(name string) int32

//go:wasmimport spelunk verbose
func verbose() int32

//go:wasmimport spelunk describe
func describe(name, value string)

//go:wasmimport spelunk note
func note(text string)
