// What Go's encoding/json says of one text must fit together, whatever the text is.
package main

import (
	"bytes"
	"encoding/json"
	"reflect"

	"spelunk"
)

// Parts of texts, so that many of them are valid.
var parts = []string{
	"{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"\\u00e9\"", "\"\\ud800\"", "\\", "0", "-1", "1e2", "1.50", "true", "null", " ", "\n",
	"\xff", "<",
}

var text []byte

//go:wasmexport precondition_append
func preconditionAppend() bool {
	return len(text) < 200
}

//go:wasmexport rule_append
func appendPart() {
	text = append(text, spelunk.Describe("part", spelunk.Sampled(parts))...)
}

//go:wasmexport rule_wrap
func wrap() {
	before, after := "[", "]"
	if spelunk.Describe("is_object", spelunk.Flip()) {
		before, after = "{\"k\":", "}"
	}
	text = []byte(before + string(text) + after)
}

//go:wasmexport rule_cut
func cut() {
	text = text[:spelunk.Describe("len", spelunk.Integer(0, len(text)))]
}

//go:wasmexport invariant_agrees
func agrees() {
	var value any
	err := json.Unmarshal(text, &value)
	spelunk.Assert(json.Valid(text) == (err == nil), "%q: valid is %t, unmarshal says %v", text, json.Valid(text), err)
	var compact, indented bytes.Buffer
	spelunk.Assert((json.Compact(&compact, text) == nil) == (err == nil), "%q: compact disagrees with %v", text, err)
	spelunk.Assert((json.Indent(&indented, text, "", " ") == nil) == (err == nil), "%q: indent disagrees with %v", text, err)
	if err != nil {
		return
	}
	written, err := json.Marshal(value)
	spelunk.Assert(err == nil, "%q cannot be written: %v", text, err)
	for _, other := range [][]byte{written, compact.Bytes(), indented.Bytes()} {
		var again any
		err := json.Unmarshal(other, &again)
		spelunk.Assert(err == nil && reflect.DeepEqual(value, again), "%q is %#v, %q is %#v", text, value, other, again)
	}
	spelunk.Sometimes("a text is valid", true)
}

func main() {}
