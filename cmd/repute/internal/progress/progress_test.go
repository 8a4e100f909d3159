package progress

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"repute"
)

// safeBuffer may be written while it is read.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestTrackerMeasures(t *testing.T) {
	tr := &tracker{name: "x"}
	start := time.Now()
	for i := range 21 {
		tr.add(start.Add(time.Duration(i)*time.Second), Sample{from: 1001, block: 2000 + 100*uint64(i), head: 9000,
			events: 500 * int64(i), endpoints: "1/2"})
	}
	events, blocks := tr.speed()
	if events != 500 || blocks != 100 || tr.eta() != 50*time.Second {
		t.Errorf("%.1f events and %.1f blocks per second, ETA %s", events, blocks, tr.eta())
	}
	if got, want := tr.text(), "37%  block 4000 of 9000  500 events/s  ETA 50s  endpoints 1/2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tr.add(start.Add(30*time.Second), Sample{from: 1001, block: 8990, head: 9000})
	if got, want := tr.text(), "block 8990, following"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	unknown := &tracker{}
	unknown.add(start, Sample{from: 1})
	if !strings.Contains(unknown.text(), "waiting") || unknown.due() || unknown.eta() != 0 {
		t.Errorf("nothing is known: %q", unknown.text())
	}
}

// Plain lines come every ten seconds or five percent, and once at the end.
func TestPlainLinesAreFew(t *testing.T) {
	tr := &tracker{}
	start := time.Now()
	var at []int
	for i := range 400 {
		s := Sample{from: 1, block: 1 + uint64(i), head: 10_000, events: int64(i)}
		if i >= 200 {
			s.block = min(uint64(i-199)*600, 10_000) // six percent at a time, then followed
		}
		if tr.add(start.Add(time.Duration(i)*progressTick), s); tr.due() {
			at = append(at, i)
		}
	}
	slow, fast := 0, 0
	for _, i := range at {
		if i < 200 {
			slow++
		} else {
			fast++
		}
	}
	if slow != 10 || fast < 15 || fast > 18 || at[len(at)-1] > 220 {
		t.Errorf("lines at %v", at)
	}
}

// Messages stay whole above bars that are drawn all the time.
func TestScreenKeepsLinesWhole(t *testing.T) {
	var out safeBuffer
	s := NewScreen(&out, true)
	p := Reporter{screen: s, log: slog.New(slog.NewTextHandler(s, nil))}
	const lines = 300
	var writing sync.WaitGroup
	for w := range 3 {
		show := p.Chain(fmt.Sprint("chain", w))
		writing.Go(func() {
			for i := range lines {
				p.log.Info("message", "writer", w, "number", i, "end", "whole")
				show(time.Now(), Sample{from: 1, block: uint64(i + 1), head: 1000, events: int64(i)})
				if i%50 == 0 {
					time.Sleep(screenRefresh) // so that bars are drawn in between
				}
			}
		})
	}
	writing.Wait()
	s.Close()
	if _, err := io.WriteString(s, "afterwards\n"); err != nil {
		t.Error(err)
	}
	text := out.String()
	for w := range 3 {
		for i := range lines {
			if !strings.Contains(text, fmt.Sprintf("msg=message writer=%d number=%d end=whole\n", w, i)) {
				t.Fatalf("line %d of writer %d is missing or torn", i, w)
			}
		}
	}
	if !strings.Contains(text, "chain1") || !strings.Contains(text, "block 300 of 1000") ||
		!strings.HasSuffix(text, "afterwards\n") {
		t.Errorf("bars are missing: %q", text[max(0, len(text)-400):])
	}
}

func TestPlainScreenPassesThrough(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out, false)
	p := Reporter{screen: s, log: slog.New(slog.NewTextHandler(s, nil))}
	show := p.Chain("base")
	show(time.Now(), Sample{from: 1, block: 10, head: 1000, events: 5})
	show(time.Now(), Sample{from: 1, block: 990, head: 1000, events: 50})
	s.Close()
	if got := out.String(); !strings.Contains(got, "msg=progress chain=base percent=1 block=10 head=1000") ||
		!strings.Contains(got, `msg="caught up" chain=base block=990`) {
		t.Errorf("got %s", got)
	}
}

func TestSampleOfMetrics(t *testing.T) {
	r := prometheus.NewRegistry()
	gauge := func(name string, v float64, labels ...string) {
		l := prometheus.Labels{}
		for i := 0; i < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, ConstLabels: l})
		g.Set(v)
		r.MustRegister(g)
	}
	for _, chain := range []string{"5", "6"} {
		gauge("repute_chain_head_block", 100, "chain", chain)
		gauge("repute_chain_indexed_block", 40, "chain", chain)
	}
	gauge("repute_endpoint_state", 1, "chain", "5", "host", "a", "state", "closed")
	gauge("repute_endpoint_state", 0, "chain", "5", "host", "b", "state", "closed")
	gauge("repute_endpoint_state", 1, "chain", "5", "host", "b", "state", "open")
	got := SampleOf(r, repute.Chain{ID: 5, StartBlock: 7})
	if want := (Sample{from: 7, block: 40, head: 100, endpoints: "1/2"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// A file ends: its import is never said to follow the chain.
func TestImportsDoNotFollow(t *testing.T) {
	t.Parallel()
	tr := &tracker{}
	tr.add(time.Now(), Sample{from: 1, block: 100, head: 100, file: true})
	if tr.last().followed() || strings.Contains(tr.text(), "following") {
		t.Errorf("an import shows %q", tr.text())
	}
}
