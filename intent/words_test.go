package intent

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestSpaced(t *testing.T) {
	for name, want := range map[string]string{
		"book_flight": "book flight", "getWeatherForecast": "get Weather Forecast",
		"Weather Forecast":       "Weather Forecast",
		"shop.order/return-item": "shop order return item", "__x__": "x", "parseJSON": "parse JSON", "": "",
		"ÄrzteSuche": "Ärzte Suche",
	} {
		if got := spaced(name); got != want {
			t.Errorf("%q became %q instead of %q", name, got, want)
		}
	}
}

// TestStems lists forms of words that have to match each other, and words that must not.
func TestStems(t *testing.T) {
	for _, same := range []string{
		"book books booked booking", "translate translates translated translating translation translations",
		"currency currencies", "reservation reserve reserved", "creation create created",
		"shipping shipped ship ships", "summary summaries", "watch watches watching",
		"box boxes", "class classes", "payment pay pays", "status", "reviewer review reviews", "process processing",
	} {
		words := strings.Fields(same)
		for _, word := range words {
			if stem(word) != stem(words[0]) {
				t.Errorf("%s has stem %q, %s has %q", word, stem(word), words[0], stem(words[0]))
			}
		}
	}
	for _, pair := range [][2]string{{"order", "ordain"}, {"bus", "bu"}, {"format", "form"}, {"stake", "steak"},
		{"ring", "r"}} {
		if stem(pair[0]) == stem(pair[1]) {
			t.Errorf("%s and %s have the stem %q", pair[0], pair[1], stem(pair[0]))
		}
	}
	if got := stems("What are the Prices of my 2 Flights?"); !slices.Equal(got, []string{"pric", "2", "flight"}) {
		t.Errorf("stems %q", got)
	}
}

// TestClean checks the bounds of texts that anybody may write.
func TestClean(t *testing.T) {
	if got := clean(" a\x00b\t\r\nc\xff\u2028d ", 100); got != "a b c d" {
		t.Errorf("got %q", got)
	}
	if got := clean(strings.Repeat("\ufdfa", 100), 50); len(got) > 50 || got == "" {
		t.Errorf("%d bytes", len(got))
	}
	rapid.Check(t, func(t *rapid.T) {
		text, limit := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")), rapid.IntRange(0, 50).Draw(t, "limit")
		got := clean(text, limit)
		if !utf8.ValidString(got) || len(got) > limit {
			t.Fatalf("%q", got)
		}
		if text = got; clean(text, len(text)) != got {
			t.Fatalf("%q is not stable: %q", got, clean(text, len(text)))
		}
	})
}
