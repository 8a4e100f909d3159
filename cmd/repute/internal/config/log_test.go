package config

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An outage writes a few lines of each message and the number of the others; lines below
// warnings, and other messages, are written as ever.
func TestRepeatedLinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newCountRepeats(slog.NewTextHandler(&out, nil)))
		for i := range 20_000 {
			log.With("request", i).Error("statement failed", "error", "connection refused")
			if i < 100 {
				log.Info("indexed", "block", i)
			}
		}
		log.Warn("another")
		time.Sleep(repeatWindow + time.Second)
		synctest.Wait()
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != repeatMost+100+1+1 {
			t.Errorf("%d lines", len(lines))
		}
		if last := lines[len(lines)-1]; !strings.Contains(last, `"statement failed"`) ||
			!strings.Contains(last, "repeated=19995") {
			t.Errorf("the last line is %s", last)
		}
		log.Error("statement failed")
		if !strings.HasSuffix(strings.TrimSpace(out.String()), `msg="statement failed"`) {
			t.Error("a new window does not begin")
		}
	})
}
