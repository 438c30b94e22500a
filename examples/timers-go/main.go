// The timers, and a list of when each one that was started must fire.
package main

import (
	"examples/timers-go/wheel"
	"spelunk"
)

const timersMax = 6

type started struct {
	timer wheel.Timer
	due   int
	// Whether it must still fire, and whether it fired.
	isPending, hasFired bool
}

var (
	timers wheel.Wheel
	all    []*started
	now    int
)

//go:wasmexport precondition_start
func preconditionStart() bool {
	return len(all) < timersMax
}

//go:wasmexport rule_start
func start() {
	ticks := spelunk.Describe("ticks", spelunk.Integer(1, 20))
	s := &started{due: now + ticks, isPending: true}
	s.timer = timers.Start(ticks, func() { s.hasFired = true })
	all = append(all, s)
}

//go:wasmexport precondition_stop
func preconditionStop() bool {
	return len(all) > 0
}

//go:wasmexport rule_stop
func stop() {
	timer := spelunk.Describe("timer", spelunk.Index(len(all)))
	s := all[timer]
	wasPending := timers.Stop(s.timer)
	spelunk.Assert(wasPending == s.isPending, "stopped timer %d: %t, expected %t", timer, wasPending, s.isPending)
	spelunk.Sometimes("a timer is stopped too late", !wasPending)
	s.isPending = false
}

//go:wasmexport rule_wait
func wait() {
	ticks := spelunk.Describe("ticks", spelunk.Integer(1, 20))
	for range ticks {
		now++
		timers.Tick()
		for timer, s := range all {
			isDue := s.isPending && s.due == now
			spelunk.Assert(s.hasFired == isDue, "timer %d fired: %t, expected %t", timer, s.hasFired, isDue)
			s.hasFired = false
			s.isPending = s.isPending && !isDue
		}
	}
}

func main() {}
