// Package progress shows how far chains are indexed: as bars where a person watches a
// terminal, as lines of the log otherwise.
//
// A [Sample] is the state of one chain at a moment. [SampleOf] takes it from the metrics of the process, so that loops
// report nothing for this purpose, and [Imported] makes one of an import. A [Reporter] measures speeds over the samples
// of the last 15 seconds and draws them on a [Screen]. The screen is also the log's writer: mpb moves the bars below
// each line that is written, so that both share one terminal.
package progress

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

const (
	// progressTick is the interval between two samples of a chain.
	progressTick = 500 * time.Millisecond
	// progressWindow is the period over which speeds are measured.
	progressWindow = 15 * time.Second
	// Lines without bars are printed at this interval, or after that many percent.
	progressPause   = 10 * time.Second
	progressPercent = 5
	// nearTip is how many blocks below its head a chain counts as up to date.
	nearTip = 64
)

// Sample is the state of one chain at a moment.
type Sample struct {
	from, block, head uint64 // first block of all, newest stored, newest there is; 0 unknown
	events            int64  // stored by this process
	endpoints         string // e.g. "2/3", "" without endpoints
	file              bool   // of a file, which ends and is not followed
}

// behind returns how many blocks are missing. It is 0 where the head is behind the newest block, as with a node that is
// late.
func (s Sample) behind() uint64 { return s.head - min(s.block, s.head) }

// followed reports whether the chain is practically at its head.
func (s Sample) followed() bool { return !s.file && s.behind() <= nearTip }

// done and all measure the whole history. Blocks before the first one count in neither.
func (s Sample) done() (done, all uint64) {
	first := s.from - min(1, s.from)
	return s.block - min(first, s.block), s.head - min(first, s.head)
}

// percent returns the progress, 0 if the head is not known.
func (s Sample) percent() int {
	done, all := s.done()
	if all == 0 {
		return 0
	}
	return int(100 * float64(min(done, all)) / float64(all))
}

// tracker measures one chain's speed and decides when lines are due.
type tracker struct {
	name    string
	history []timedSample // of the window, oldest first
	told    time.Time     // of the last plain line
	percent int           // percent in the last line
	caught  bool          // the line "up to date" was printed
}

// timedSample is a sample with the time at which it was taken.
type timedSample struct {
	Sample
	at time.Time
}

// add adds a sample.
func (t *tracker) add(now time.Time, s Sample) {
	if len(t.history) > 0 && t.last().block == 0 {
		t.history = nil // speed is measured from where it is known
	}
	t.history = append(t.history, timedSample{s, now})
	for len(t.history) > 2 && now.Sub(t.history[0].at) > progressWindow {
		t.history = t.history[1:]
	}
}

// last returns the newest sample. There is always one, because a tracker begins with a sample.
func (t *tracker) last() timedSample { return t.history[len(t.history)-1] }

// speed returns events and blocks per second over the window. Both are 0 with one sample, and after a reorganization
// that took the block back.
func (t *tracker) speed() (events, blocks float64) {
	first, last := t.history[0], t.last()
	seconds := last.at.Sub(first.at).Seconds()
	if seconds <= 0 || last.block < first.block {
		return 0, 0
	}
	return float64(last.events-first.events) / seconds, float64(last.block-first.block) / seconds
}

// eta returns the time until the head is reached at this speed; 0 if unknown. The bound keeps the conversion from
// overflowing when the speed is almost zero.
func (t *tracker) eta() time.Duration {
	_, blocks := t.speed()
	if blocks <= 0 {
		return 0
	}
	return min(time.Duration(float64(t.last().behind())/blocks*float64(time.Second)), 1000*time.Hour).Round(time.Second)
}

// text returns the text after the bar.
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
	return fmt.Sprintf("%d%%  block %d of %d  %.0f events/s%s%s", s.percent(), s.block, s.head, events, eta,
		t.endpoints())
}

// endpoints returns how many endpoints work, e.g. "  endpoints 2/3".
func (t *tracker) endpoints() string {
	if e := t.last().endpoints; e != "" {
		return "  endpoints " + e
	}
	return ""
}

// due reports whether a line is due, and records that it is printed.
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

// Reporter shows the progress of chains: bars on a terminal, otherwise lines of the log.
type Reporter struct {
	screen *Screen
	log    *slog.Logger
}

// NewReporter returns a reporter with bars on screen, or lines in log if screen has no bars.
func NewReporter(screen *Screen, log *slog.Logger) Reporter {
	return Reporter{screen: screen, log: log}
}

// Follow shows one chain until ctx ends, and its final state. The final state is shown after ctx has ended, so that the
// last line is not an old one.
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

// Chain adds a chain. The returned function takes its samples. It MUST NOT be called by two goroutines at once.
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
