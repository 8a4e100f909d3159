package httpapi

import (
	"fmt"
	"testing"
	"time"
)

// TestBucketsAreBounded: strangers cannot fill the memory, and a caller that is
// still asking keeps its bucket when the generation changes.
func TestBucketsAreBounded(t *testing.T) {
	b, hourly := newBuckets(), Quota{Rate: 1.0 / 3600, Burst: 1}
	if b.take("known", hourly).Wait != 0 {
		t.Fatal("the first request is refused")
	}
	b.since = time.Now().Add(-2 * b.lifetime)
	if b.take("known", hourly).Wait == 0 {
		t.Error("a new generation filled a bucket again")
	}
	for i := range maxCallers + 10 {
		b.take(fmt.Sprint(i), hourly)
	}
	if len(b.current) > maxCallers || len(b.previous) > maxCallers {
		t.Errorf("%d and %d buckets", len(b.current), len(b.previous))
	}
	if b.lifetime < time.Hour {
		t.Errorf("forgotten after %s, before the bucket is full again", b.lifetime)
	}
}

// A caller whose quota changes gets the new one, and others keep theirs.
func TestQuotaOfACaller(t *testing.T) {
	b, small, large := newBuckets(), Quota{Rate: 1.0 / 60, Burst: 1}, Quota{Rate: 1.0 / 60, Burst: 3}
	for i, want := range []Taken{{Left: 2}, {Left: 1}, {Left: 0}} {
		if got := b.take("key", large); got != want {
			t.Errorf("request %d: %+v, want %+v", i, got, want)
		}
	}
	if b.take("key", large).Wait == 0 {
		t.Error("the fourth request passes")
	}
	if b.take("key", small).Wait != 0 || b.take("key", small).Wait == 0 {
		t.Error("the new quota does not count")
	}
}

func TestCallerKey(t *testing.T) {
	for ip, want := range map[string]string{
		"203.0.113.1": "203.0.113.1", "::ffff:203.0.113.1": "::ffff:203.0.113.1",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64",
		"fe80::1%eth0":      "fe80::/64", "": "", "nonsense": "nonsense",
	} {
		if got := CallerKey(ip); got != want {
			t.Errorf("%q: %q, want %q", ip, got, want)
		}
	}
}
