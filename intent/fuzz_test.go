package intent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"repute"
	"repute/intent"
)

// hostile are texts that are cheap to send and could be expensive to read.
func hostile() map[string]string {
	return map[string]string{
		"NUL":              "\x00",
		"lone surrogates":  "a\xed\xa0\x80b\xed\xbf\xbfc",
		"combining marks":  "a" + strings.Repeat("\u0301", 10_000),
		"emoji":            strings.Repeat("\U0001F600", 3_000_000),
		"invalid UTF-8":    strings.Repeat("\xff", 10<<20),
		"one word":         strings.Repeat("a", 10<<20),
		"many words":       strings.Repeat("a b c d ", 1<<20),
		"spaces":           strings.Repeat(" ", 10<<20),
		"long normal form": strings.Repeat("\ufdfa", 1<<20),
		"separators":       strings.Repeat("_", 10<<20),
		"lower eighth":     strings.Repeat("▁", 1<<20),
		"Hangul":           strings.Repeat("\u1100\u1161", 1<<20),
		"right to left":    "\u202eabc\u202c",
	}
}

// bounded is an embedder that refuses texts that a real one should not have to read.
type bounded struct{ letters }

func (b bounded) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for _, text := range texts {
		if len(text) > 5<<10 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return nil, fmt.Errorf("a text of %d bytes", len(text))
		}
	}
	return b.letters.Embed(ctx, texts)
}

// TestHostile stores and searches each text, in all its places.
func TestHostile(t *testing.T) {
	index, err := intent.New(bounded{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range hostile() {
		many := slices.Repeat([]string{text}, 1000)
		item := intent.Item{ID: name, Name: text, Description: text, Parameters: many, Examples: many}
		if err := index.Add(t.Context(), item); err != nil {
			t.Errorf("%s: add: %v", name, err)
		}
		if _, err := index.Search(t.Context(), intent.Query{Text: text}); err != nil &&
			!errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: search: %v", name, err)
		}
	}
	if err := index.Add(t.Context(), intent.Item{ID: "good", Name: "pay"}); err != nil {
		t.Fatal(err)
	}
	if r := search(t, index, intent.Query{Text: "pay"}); r.Matches[0].ID != "good" || !r.Sure {
		t.Errorf("%+v", r)
	}
}

// FuzzIndex stores and searches any bytes. Package sentence fuzzes the model, which is slow.
func FuzzIndex(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text[:min(len(text), 1000)], "book_flight")
	}
	f.Add("getWeather", "weather tomorrow")
	f.Fuzz(func(t *testing.T, text, query string) {
		index := lettersIndex(t)
		item := intent.Item{ID: "1", Name: text, Description: query, Parameters: []string{query},
			Examples: []string{text}}
		if err := index.Add(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		r, err := index.Search(t.Context(), intent.Query{Text: query})
		if err != nil {
			return
		}
		m := r.Matches[0]
		if m.Similarity < -1.01 || m.Similarity > 1.01 || m.Words < 0 || m.Score > 1.2 || len(m.Name) > 200 {
			t.Fatalf("%+v", m)
		}
		index.Remove("1")
		if r := search(t, index, intent.Query{Text: query}); len(r.Matches) != 0 {
			t.Fatalf("%+v", r)
		}
	})
}
