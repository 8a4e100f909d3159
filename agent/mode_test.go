package agent

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// visitor is a request that asked a gate to enter and was not answered yet.
type visitor struct {
	answer chan *Problem
	cancel context.CancelFunc
}

// doorman asks a gate and counts what it admits.
type doorman struct {
	*rapid.T
	g       *gate
	inside  int
	waiting []visitor // in the order in which they came
}

// queue is how many requests wait by the gate's own list.
func (d *doorman) queue() int {
	d.g.mu.Lock()
	defer d.g.mu.Unlock()
	return len(d.g.waiting)
}

// ask lets a request come, and returns when it was answered or waits.
func (d *doorman) ask() {
	before := d.queue()
	ctx, cancel := context.WithCancel(context.Background())
	v := visitor{make(chan *Problem, 1), cancel}
	go func() { v.answer <- d.g.enter(ctx) }()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Microsecond) {
		switch {
		case len(v.answer) > 0:
			d.take(v)
			return
		case d.queue() > before:
			d.waiting = append(d.waiting, v)
			return
		}
	}
	d.Fatal("a request neither waits nor has an answer")
}

// take takes the answer of a request.
func (d *doorman) take(v visitor) *Problem {
	select {
	case p := <-v.answer:
		v.cancel()
		if p == nil {
			d.inside++
		}
		return p
	case <-time.After(time.Minute):
		d.Fatal("a request was not answered in its order")
		return nil
	}
}

// settle takes the answers of those that do not wait any more, which MUST be the first ones, and checks the gate.
func (d *doorman) settle() {
	for queue := d.queue(); len(d.waiting) > queue; d.waiting = d.waiting[1:] {
		d.take(d.waiting[0])
	}
	mode, accepting := d.g.state()
	most := d.g.most
	if mode == Degraded {
		most = d.g.degraded
	}
	if d.g.inside != d.inside || d.inside > d.g.most {
		d.Fatalf("%d inside, the gate counts %d of %d", d.inside, d.g.inside, d.g.most)
	}
	if len(d.waiting) > 0 && (!accepting || d.inside < most) {
		d.Fatalf("%d wait in mode %s with %d of %d inside", len(d.waiting), mode, d.inside, most)
	}
}

// A gate admits no more than it may, in the order in which requests come; nobody waits where there is room or where
// waiting does not help; and when it was closed, it is idle as soon as the last one left.
func TestGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		d := &doorman{T: t, g: newGate(most, rapid.IntRange(1, most).Draw(t, "degraded"), time.Hour)}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch step := rapid.SampledFrom([]string{"ask", "ask", "ask", "leave", "mode", "cancel"}).Draw(t, "step"); {
			case step == "ask":
				d.ask()
			case step == "leave" && d.inside > 0:
				d.inside--
				d.g.leave()
			case step == "mode":
				d.g.set(rapid.SampledFrom([]Mode{Normal, Normal, Degraded, Maintenance, Shutdown}).Draw(t, "mode"))
			case step == "cancel" && len(d.waiting) > 0:
				at := rapid.IntRange(0, len(d.waiting)-1).Draw(t, "who")
				v := d.waiting[at]
				v.cancel()
				if d.take(v) == nil {
					t.Fatal("a request that gave up is admitted")
				}
				d.waiting = append(d.waiting[:at:at], d.waiting[at+1:]...)
			}
			d.settle()
		}
		idle := d.g.close()
		d.settle()
		if p := d.g.enter(context.Background()); p == nil || p.Retry == 0 {
			t.Fatalf("a closed gate says %v", p)
		}
		for ; d.inside > 0; d.inside-- {
			select {
			case <-idle:
				t.Fatalf("idle with %d inside", d.inside)
			default:
			}
			d.g.leave()
		}
		select {
		case <-idle:
		default:
			t.Fatal("nobody is inside, and the gate is not idle")
		}
	})
}
