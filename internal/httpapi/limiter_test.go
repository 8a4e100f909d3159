package httpapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// TestBucketsAreBounded: strangers cannot fill the memory, and a caller that is
// still asking keeps its bucket when the generation changes.
func TestBucketsAreBounded(t *testing.T) {
	b := &buckets{rate: rate.Limit(1.0 / 3600), burst: 1, current: map[string]*rate.Limiter{}}
	if b.allow(context.Background(), "known") != 0 {
		t.Fatal("the first request is refused")
	}
	b.since = time.Now().Add(-2 * b.lifetime())
	if b.allow(context.Background(), "known") == 0 {
		t.Error("a new generation filled a bucket again")
	}
	for i := range maxCallers + 10 {
		b.allow(context.Background(), fmt.Sprint(i))
	}
	if len(b.current) > maxCallers || len(b.previous) > maxCallers {
		t.Errorf("%d and %d buckets", len(b.current), len(b.previous))
	}
	if b.lifetime() < time.Hour {
		t.Errorf("forgotten after %s, before the bucket is full again", b.lifetime())
	}
}

func TestCallerKey(t *testing.T) {
	for ip, want := range map[string]string{
		"203.0.113.1": "203.0.113.1", "::ffff:203.0.113.1": "::ffff:203.0.113.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64",
		"fe80::1%eth0": "fe80::/64", "": "", "nonsense": "nonsense",
	} {
		if got := CallerKey(ip); got != want {
			t.Errorf("%q: %q, want %q", ip, got, want)
		}
	}
}
