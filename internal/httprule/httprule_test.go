package httprule

import (
	"math"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestRetryAfter: seconds and dates are pauses, other texts are none.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-5": 0, "1.5": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second,
		"99999999999999999999999":       math.MaxInt32 * time.Second,
		"Thu, 01 Jan 2026 00:01:00 GMT": time.Minute,
		"Thu, 01 Jan 2015 00:01:00 GMT": 0,
	} {
		if got := RetryAfter(header, now); got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

// TestPort: a URL without a port has that of its scheme.
func TestPort(t *testing.T) {
	for text, want := range map[string]string{
		"http://a": "80", "https://a/b": "443", "http://a:443": "443", "https://[::1]": "443",
		"https://[::1]:1": "1", "ws://a": "443",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Port(u); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestHost: spellings that DNS takes for one name are one host; what is no name is only brought to lower case.
func TestHost(t *testing.T) {
	for name, want := range map[string]string{
		"Shop.Example": "shop.example", "shop.example.": "shop.example", "ｓｈｏｐ。ｅｘａｍｐｌｅ": "shop.example",
		"bücher.example": "xn--bcher-kva.example", "BÜCHER.example": "xn--bcher-kva.example",
		"XN--BCHER-KVA.example": "xn--bcher-kva.example",
		"My_Host.example":       "my_host.example", "2001:DB8::1": "2001:db8::1", "192.0.2.1": "192.0.2.1", "": "",
	} {
		if got := Host(name); got != want || Host(got) != got {
			t.Errorf("%q: %q, wanted %q", name, got, want)
		}
	}
}

// TestHostOfAnyLength: a text that is too long for a name is not converted, which would take seconds.
func TestHostOfAnyLength(t *testing.T) {
	var long []rune
	for r := rune(0x4e00); r < 0x9f00; r++ {
		long = append(long, r)
	}
	text := "A" + string(long)
	if got := Host(text); got != "a"+string(long) {
		t.Errorf("%d bytes became %d", len(text), len(got))
	}
	wide := strings.Repeat(strings.Repeat("ａ", 61)+"。", 4)
	if got := Host(wide); got != strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 61)+".", 4), ".") {
		t.Errorf("a long name in full-width letters is %q", got)
	}
}
