// What Go's encoding/json says of one text must fit together, whatever the text is.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// What the text means. Numbers stay as they are written, since some are too large for a float.
func decode(text []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, errors.New("something follows")
	}
	return value, nil
}

//go:wasmexport invariant_agrees
func agrees() {
	value, err := decode(text)
	spelunk.Assert(json.Valid(text) == (err == nil), "%q: valid is %t, the decoder says %v", text, json.Valid(text), err)
	var compact, indented bytes.Buffer
	spelunk.Assert((json.Compact(&compact, text) == nil) == (err == nil), "%q: compact disagrees with %v", text, err)
	spelunk.Assert((json.Indent(&indented, text, "", " ") == nil) == (err == nil), "%q: indent disagrees with %v", text, err)
	if err != nil {
		return
	}
	written, err := json.Marshal(value)
	spelunk.Assert(err == nil, "%q cannot be written: %v", text, err)
	for _, other := range [][]byte{written, compact.Bytes(), indented.Bytes()} {
		again, err := decode(other)
		spelunk.Assert(err == nil && reflect.DeepEqual(value, again), "%q is %#v, %q is %#v", text, value, other, again)
	}
	spelunk.Sometimes("a text is valid", true)
}

func main() {}
