package intents

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/intent"
	"repute/manifest/agentjson"
)

// Without a bound nothing may be paid, which is not the same as a bound of 0 dollars.
func TestBound(t *testing.T) {
	t.Parallel()
	f := runFlags{}
	if most, err := f.bound(); most != nil || err != nil {
		t.Errorf("no bound: %v, %v", most, err)
	}
	for text, want := range map[string]repute.Micros{"0": 0, "0.05": 50_000, "1": 1_000_000} {
		f.Max = text
		if most, err := f.bound(); err != nil || most == nil || *most != want {
			t.Errorf("%s: %v, %v", text, most, err)
		}
	}
	for _, text := range []string{"-1", "1e3", "0.0000001", "all", " 1"} {
		f.Max = text
		if _, err := f.bound(); !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), "max: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An intent is named as intent run takes it, and is found by the names of its parameters too.
func TestItemsOf(t *testing.T) {
	t.Parallel()
	m := agentjson.Manifest{Origin: "a.example", Intents: []agentjson.Intent{
		{Name: "book", Description: "Books.", Parameters: []agentjson.Parameter{{Name: " city "}, {Name: "day"}}},
		{Name: "plain"}}}
	items := itemsOf(&m)
	if len(items) != 2 || items[0].ID != "book@a.example" || items[0].Kind != intent.KindIntent ||
		strings.Join(items[0].Parameters, ",") != "city,day" || items[0].Description != "Books." ||
		items[1].ID != "plain@a.example" || items[1].Parameters != nil {
		t.Errorf("%+v", items)
	}
}

// A file is read before a domain is asked, and one that is no manifest without errors is refused by its name.
func TestItemsOfFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "agent.json")
	for _, text := range []string{"", "{", "[]", `{"version":"1.4"}`, strings.Repeat(" ", agentjson.MaxBytes) + "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f := findFlags{from: []string{name}}
		if items, err := f.items(t.Context(), &cli.Program{}); !errors.Is(err, repute.ErrInvalid) ||
			!strings.Contains(err.Error(), "from: ") {
			t.Errorf("%.20q: %v, %v", text, items, err)
		}
	}
	if _, _, err := readManifest(t.Context(), &cli.Program{}, dir); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a directory: %v", err)
	}
}

// The margin and the doubt are told of the first match alone, and a match has one line whatever its name has.
func TestPrintMatches(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := foundJSON{Sure: rapid.Bool().Draw(t, "sure"), Margin: 0.25}
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			r.Matches = append(r.Matches, matchJSON{ID: rapid.String().Draw(t, "id"), Kind: "intent", Score: 0.5})
		}
		var out strings.Builder
		if err := (&findFlags{}).print(&cli.Program{Stdout: &out}, &r); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		doubts := 0
		for i, line := range lines {
			if strings.HasPrefix(line, "0.500  0.250 unsure") {
				doubts++
			}
			if (i == 1) != strings.HasPrefix(line, "0.500  0.250") {
				t.Fatalf("line %d of %q", i, lines)
			}
		}
		if len(lines) != len(r.Matches)+1 || (doubts == 1) != (!r.Sure && len(r.Matches) > 0) {
			t.Fatalf("%d matches, sure %t: %q", len(r.Matches), r.Sure, lines)
		}
	})
}
