// Package spelunk is Spelunk for guests in Go: the imports of ABI.md, as functions of Go's types. README.md says how to build.
//
// A function becomes an export by //go:wasmexport rule_NAME, precondition_NAME, invariant_NAME, fault_NAME, setup,
// teardown, check or state.
package spelunk

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"
)

// Flip goes either way; false is the simplest.
func Flip() bool {
	return Boolean(0.5)
}

// Boolean is true with this probability; false is the simplest.
func Boolean(probability float64) bool {
	return boolean(probability) != 0
}

// Index is one of 0..n, without n; 0 is the simplest. With n = 0 the run ends as a deadlock.
func Index(n int) int {
	return int(index(uint32(n)))
}

// Integer is in min..=max; the simplest is 0, or the bound nearest to it.
func Integer(min, max int) int {
	return int(integer(int64(min), int64(max), 0))
}

// Unsigned is in min..=max; the simplest is 0, or the bound nearest to it.
func Unsigned(min, max uint64) uint64 {
	return unsigned(min, max, 0)
}

// Float is in min..=max and finite; the simplest is 0, or the bound nearest to it.
func Float(min, max float64) float64 {
	return float(min, max, 0)
}

// AnyFloat is any float, NaN and infinities too.
func AnyFloat() float64 {
	return float(math.Inf(-1), math.Inf(1), 3)
}

// Bytes are at least min and at most max; few and zeros are the simplest.
func Bytes(min, max int) []byte {
	drawn := make([]byte, max)
	return drawn[:bytes(unsafe.Pointer(unsafe.SliceData(drawn)), uint32(min), uint32(max))]
}

// Sampled is one of the items; the first is the simplest.
func Sampled[T any](items []T) T {
	return items[Index(len(items))]
}

// Span says that the choices of draw belong together. The label is a constant.
func Span[T any](label string, draw func() T) T {
	spanBegin(label)
	drawn := draw()
	spanEnd(0)
	return drawn
}

// Assume gives up a run that does not count, unless the condition holds.
func Assume(condition bool) {
	if !condition {
		reject()
	}
}

// Assert is a finding, told apart from others by its place, unless the condition holds.
func Assert(condition bool, format string, arguments ...any) {
	if !condition {
		_, file, line, _ := runtime.Caller(1)
		panicAt(fmt.Sprintf(format, arguments...), file, uint32(line), 1)
	}
}

// Fail ends the run as a finding.
func Fail(format string, arguments ...any) {
	fail(fmt.Sprintf(format, arguments...))
}

// Always says that the condition holds wherever this is reached; where it does not, the run ends as a finding.
func Always(name string, condition bool) {
	always(name, word(condition))
}

// Sometimes says that the condition is expected to hold at least once.
func Sometimes(name string, condition bool) {
	sometimes(name, word(condition))
}

// Reachable says that this is expected to be reached at least once.
func Reachable(name string) {
	reachable(name)
}

// Never ends the run as a finding: this must never be reached.
func Never(name string) {
	never(name)
}

// Target says how near this is to something interesting: the exploration prefers what raises the highest score of this label.
func Target(score float64, label string) {
	target(score, label)
}

// Observe says that a number is of interest: the exploration goes on from where it is observed first under this name.
func Observe(name string, number int64) {
	observe(number, name)
}

// Event is counted; the report says how often each event happened.
func Event(text string) {
	event(text)
}

// State hands over more bytes of what is compared in place of the memory. Only in the export state.
func State(part []byte) {
	state(unsafe.Pointer(unsafe.SliceData(part)), uint32(len(part)))
}

// Fault says whether this fault is on. The export fault_NAME declares it.
func Fault(name string) bool {
	return fault(name) != 0
}

// Verbose says whether a finding is being reported, so that it pays to format.
func Verbose() bool {
	return verbose() != 0
}

// Describe says that the argument name of this step has this value, and returns it: Describe("n", Integer(1, 9)).
func Describe[T any](name string, value T) T {
	if Verbose() {
		shown := fmt.Sprint(value)
		if text, isText := any(value).(string); isText {
			shown = fmt.Sprintf("%q", text)
		}
		describe(name, shown)
	}
	return value
}

// Note is a line below the step.
func Note(format string, arguments ...any) {
	if Verbose() {
		note(fmt.Sprintf(format, arguments...))
	}
}

func word(condition bool) int32 {
	if condition {
		return 1
	}
	return 0
}
