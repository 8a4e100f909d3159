package config

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// repeatWindow is the time in which repeatMost warnings or errors of one message are
	// written; the others are counted. An outage of the database makes thousands of equal
	// lines a second, of which an operator needs a few and their number.
	repeatWindow = 10 * time.Second
	repeatMost   = 5
)

// countRepeats is a log handler that writes the first lines of a message and counts those
// that follow within a window. It leaves lines below warnings alone.
type countRepeats struct {
	next  slog.Handler
	lines *repeated
}

// repeated is what the handlers derived from one countRepeats share.
type repeated struct {
	mu      sync.Mutex
	windows map[lineKey]*window
}

type lineKey struct {
	level   slog.Level
	message string
}

// window counts the lines of one message since it began.
type window struct {
	written, left int
}

func newCountRepeats(next slog.Handler) *countRepeats {
	return &countRepeats{next, &repeated{windows: map[lineKey]*window{}}}
}

// Enabled implements slog.Handler.
func (h *countRepeats) Enabled(ctx context.Context, l slog.Level) bool { return h.next.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *countRepeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &countRepeats{h.next.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h *countRepeats) WithGroup(name string) slog.Handler {
	return &countRepeats{h.next.WithGroup(name), h.lines}
}

// Handle implements slog.Handler.
func (h *countRepeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn || h.admit(lineKey{r.Level, r.Message}) {
		return h.next.Handle(ctx, r)
	}
	return nil
}

// admit reports whether a line is to be written, and otherwise counts it.
func (h *countRepeats) admit(key lineKey) bool {
	h.lines.mu.Lock()
	defer h.lines.mu.Unlock()
	w, open := h.lines.windows[key]
	if !open {
		w = &window{}
		h.lines.windows[key] = w
		time.AfterFunc(repeatWindow, func() { h.end(key) })
	}
	if w.written < repeatMost {
		w.written++
		return true
	}
	w.left++
	return false
}

// end closes a window and writes how many lines it left out.
func (h *countRepeats) end(key lineKey) {
	h.lines.mu.Lock()
	left := h.lines.windows[key].left
	delete(h.lines.windows, key)
	h.lines.mu.Unlock()
	if left == 0 {
		return
	}
	r := slog.NewRecord(time.Now(), key.level, key.message, 0)
	r.AddAttrs(slog.Int("repeated", left), slog.Duration("within", repeatWindow))
	_ = h.next.Handle(context.Background(), r)
}
