// Two bugs that panic in one helper.
package main

import "fmt"

var ones, twos int

//go:noinline
func die(what string) {
	panic(fmt.Sprintf("fatal: %s", what))
}

//go:wasmexport one
func one() {
	ones++
	if ones == 2 {
		die("it went wrong")
	}
}

//go:wasmexport two
func two() {
	twos++
	if twos == 2 {
		die("it went wrong")
	}
}

func main() {}
