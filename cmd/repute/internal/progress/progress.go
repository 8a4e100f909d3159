// Package progress shows how far chains are indexed: as bars where a person watches a
// terminal, as lines of the log otherwise.
package progress

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// progressTick is between two looks at how far a chain has come.
	progressTick = 500 * time.Millisecond
	// progressWindow is what speeds are measured over.
	progressWindow = 15 * time.Second
	// Plain lines come this often, or whenever so many percent are done.
	progressPause   = 10 * time.Second
	progressPercent = 5
	// nearTip is how many blocks behind its head a chain counts as followed.
	nearTip = 64
)

// Sample is how far one chain has come at a moment.
type Sample struct {
	from, block, head uint64 // first block of all, newest stored, newest there is; 0 unknown
	events            int64  // stored by this process
	endpoints         string // e.g. "2/3", "" where none are asked
	file              bool   // of a file, which ends and is not followed
}

// behind is how many blocks are missing.
func (s Sample) behind() uint64 { return s.head - min(s.block, s.head) }

// followed tells whether the chain is as good as at its head.
func (s Sample) followed() bool { return !s.file && s.behind() <= nearTip }

// done and all measure the whole history.
func (s Sample) done() (done, all uint64) {
	first := s.from - min(1, s.from)
	return s.block - min(first, s.block), s.head - min(first, s.head)
}

// percent is 0 where the head is not known.
func (s Sample) percent() int {
	done, all := s.done()
	if all == 0 {
		return 0
	}
	return int(100 * float64(min(done, all)) / float64(all))
}

// tracker measures one chain's speed and decides when plain lines are due.
type tracker struct {
	name    string
	history []timedSample // of the window, oldest first
	told    time.Time     // of the last plain line
	percent int           // that it told
	caught  bool          // that it said the chain is followed
}

type timedSample struct {
	Sample
	at time.Time
}

// add takes a new sample.
func (t *tracker) add(now time.Time, s Sample) {
	if len(t.history) > 0 && t.last().block == 0 {
		t.history = nil // speed is measured from where it is known
	}
	t.history = append(t.history, timedSample{s, now})
	for len(t.history) > 2 && now.Sub(t.history[0].at) > progressWindow {
		t.history = t.history[1:]
	}
}

func (t *tracker) last() timedSample { return t.history[len(t.history)-1] }

// speed is events and blocks per second over the window.
func (t *tracker) speed() (events, blocks float64) {
	first, last := t.history[0], t.last()
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 || last.block < first.block {
		return 0, 0
	}
	return float64(last.events-first.events) / seconds, float64(last.block-first.block) / seconds
}

// eta is when the head will be reached at this speed; 0 for nobody knows.
func (t *tracker) eta() time.Duration {
	_, blocks := t.speed()
	if blocks <= 0 {
		return 0
	}
	return min(time.Duration(float64(t.last().behind())/blocks*float64(time.Second)), 1000*time.Hour).Round(time.Second)
}

// text is what stands behind the bar.
func (t *tracker) text() string {
	s := t.last()
	if s.head == 0 {
		return "waiting for the node" + t.endpoints()
	}
	if s.block == 0 {
		return fmt.Sprintf("nothing stored yet, the head is %d%s", s.head, t.endpoints())
	}
	if s.followed() {
		return fmt.Sprintf("block %d, following%s", s.block, t.endpoints())
	}
	events, _ := t.speed()
	eta := ""
	if d := t.eta(); d > 0 {
		eta = "  ETA " + d.String()
	}
	return fmt.Sprintf("%d%%  block %d of %d  %.0f events/s%s%s", s.percent(), s.block, s.head, events, eta, t.endpoints())
}

// endpoints is how many of them work, e.g. "  endpoints 2/3".
func (t *tracker) endpoints() string {
	if e := t.last().endpoints; e != "" {
		return "  endpoints " + e
	}
	return ""
}

// due tells whether a plain line is, and remembers it as told.
func (t *tracker) due() bool {
	s := t.last()
	if s.head == 0 || s.block == 0 {
		return false
	}
	if s.followed() {
		first := !t.caught
		t.caught = true
		return first
	}
	if !t.told.IsZero() && s.at.Sub(t.told) < progressPause && s.percent() < t.percent+progressPercent {
		return false
	}
	t.caught, t.told, t.percent = false, s.at, s.percent()
	return true
}

// log writes a plain line.
func (t *tracker) log(log *slog.Logger) {
	s := t.last()
	if s.followed() {
		log.Info("caught up", "chain", t.name, "block", s.block)
		return
	}
	events, _ := t.speed()
	log.Info("progress", "chain", t.name, "percent", s.percent(), "block", s.block, "head", s.head,
		"eventsPerSecond", int(events), "eta", t.eta(), "endpoints", s.endpoints)
}

// Reporter shows how far chains have come: bars on a terminal, lines of the log where there is none.
type Reporter struct {
	screen *Screen
	log    *slog.Logger
}

// NewReporter returns a reporter with bars on screen, or lines in log where screen has none.
func NewReporter(screen *Screen, log *slog.Logger) Reporter {
	return Reporter{screen: screen, log: log}
}

// Follow shows one chain until ctx ends, and once more then.
func (p Reporter) Follow(ctx context.Context, name string, look func() Sample) {
	show := p.Chain(name)
	for {
		show(time.Now(), look())
		select {
		case <-ctx.Done():
			show(time.Now(), look())
			return
		case <-time.After(progressTick):
		}
	}
}

// Chain begins to show a chain; what it returns takes its samples.
func (p Reporter) Chain(name string) func(time.Time, Sample) {
	t := &tracker{name: name}
	if p.screen.bars == nil {
		return func(now time.Time, s Sample) {
			if t.add(now, s); t.due() {
				t.log(p.log)
			}
		}
	}
	bar := p.screen.add(name)
	return func(now time.Time, s Sample) {
		t.add(now, s)
		done, all := s.done()
		bar.show(done, all, t.text())
	}
}
