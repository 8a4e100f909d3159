package searchtext

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"repute"
)

// stored reports whether Postgres accepts a text, and whether it is bounded as what a stranger wrote must be.
func stored(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsRune(s, 0) && len(s) <= 4*maxSearchPlace
}

// FuzzPlaces: an endpoint and a text to search for may be any bytes. A document is found by the text of its endpoint.
func FuzzPlaces(f *testing.F) {
	for _, s := range []string{"https://user@www.Example.com:8443/a/?q#f", "zyf.ai", "[::1]:80",
		"http://[::ffff:1.2.3.4]/", "eip155:1:0x0000000000000000000000000000000000000001", "//", "@", ":",
		"a..b.example", "%zz", "\xff.com",
		"https://%00.example", "1.2.3.4:5", "0x", "http://a.example/" + strings.Repeat("é", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		places := placesOf([]repute.Service{{Endpoint: s}})
		wrong := func(p string) bool { return p == "" || !stored(p) }
		if len(places) > maxSearchList || slices.ContainsFunc(places, wrong) {
			t.Errorf("%q is at %q", s, places)
		}
		whole, host := PlaceOf(Folded(s, maxSearchText))
		if !stored(whole) || !stored(host) || whole == "" && host != "" || whole != "" && host == whole {
			t.Errorf("%q names %q and %q", s, whole, host)
		}
		if words := AsWords(Folded(s, maxSearchText)); !utf8.ValidString(words) || strings.Contains(words, "  ") {
			t.Errorf("%q has the words %q", s, words)
		}
	})
}

func TestEndpointsAreFoundByTheirText(t *testing.T) {
	t.Parallel()
	for endpoint, texts := range map[string][]string{
		"https://www.Example.com/a/": {"example.com", "https://example.com/a", "EXAMPLE.com/a"},
		"https://api.example.com:8443": {"example.com", "api.example.com",
			"api.example.com:8443"},
		"http://[::ffff:0:1]:80/x":                            {"http://[::ffff:0:1]:80/x", "::ffff:0:1"},
		"http://10.0.0.1/":                                    {"10.0.0.1", "http://10.0.0.1"},
		"eip155:1:0x00000000000000000000000000000000000000Aa": {"0x00000000000000000000000000000000000000aa"},
	} {
		places := placesOf([]repute.Service{{Endpoint: endpoint}})
		for _, text := range texts {
			if whole, _ := PlaceOf(Folded(text, maxSearchText)); !slices.Contains(places, whole) {
				t.Errorf("%s, which is %q, does not find %s, which is at %q", text, whole, endpoint, places)
			}
		}
	}
}

// Many endpoints of one document cost no more than those that are stored.
func TestPlacesAreBounded(t *testing.T) {
	endless := strings.Repeat("a.", 390) + "example"
	services := slices.Repeat([]repute.Service{{Endpoint: endless}}, 20_000)
	if n := testing.AllocsPerRun(1, func() { placesOf(services) }); n > 1000 {
		t.Errorf("%.0f allocations", n)
	}
}
