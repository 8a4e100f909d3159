package bench

import (
	"testing"
	"time"

	"repute/manifest"
)

// The ideal is bound by the requests at once, or by the slowest host.
func TestIdeal(t *testing.T) {
	second := time.Second
	for name, c := range map[string]struct {
		delays          [][]time.Duration
		atOnce, perHost int
		want            time.Duration
	}{
		"even": {[][]time.Duration{{second, second}, {second, second}, {second, second}, {second, second}}, 2,
			2, 2 * second},
		"one slow":         {[][]time.Duration{{8 * second}, {second}, {second}, {second}}, 2, 1, 8 * second},
		"fewer than slots": {[][]time.Duration{{second, second}, {second, second}}, 64, 2, second},
	} {
		if got := ideal(c.delays, c.atOnce, c.perHost); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The hosts are as slow in every run, and the documents are what agents publish.
func TestDocumentsAreRealistic(t *testing.T) {
	a, b := delays(190, 100), delays(190, 100)
	if a[0][0] != b[0][0] || a[189][99] != b[189][99] || a[0][0] == a[1][0] {
		t.Error("the latencies differ between runs, or not between hosts")
	}
	reg, problems := manifest.Parse(registration(7))
	if len(problems) > 0 || len(reg.Services) != 3 || len(reg.Registrations) != 1 || reg.X402 == nil {
		t.Errorf("%+v with %v", reg, problems)
	}
	if n := len(registration(7)); n < 800 || n > 1600 {
		t.Errorf("%d bytes", n)
	}
}
