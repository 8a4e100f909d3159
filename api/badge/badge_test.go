package badge

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"repute"
)

// elements returns the elements of an image and the text that it shows. It fails where the image is no well-formed XML.
func elements(t testing.TB, svg []byte) (names []string, text string) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return names, text
		}
		if err != nil {
			t.Fatalf("%v in %s", err, svg)
		}
		switch e := token.(type) {
		case xml.StartElement:
			names = append(names, e.Name.Local)
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" || a.Name.Local == "style" {
					t.Errorf("attribute %s of %s", a.Name.Local, e.Name.Local)
				}
			}
		case xml.CharData:
			text += string(e) + "\n"
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		score   repute.Score
		isStale bool
		want    string
	}{
		{repute.Score{Status: repute.Rated, Score: 72_400, Tier: 3}, false, "72.4 · tier 3"},
		{repute.Score{Status: repute.Rated, Score: -100_000}, false, "-100.0 · tier 0"},
		{repute.Score{Status: repute.Thin, Score: 12_000, Tier: 1}, true, "12.0 · thin · stale"},
		{repute.Score{Status: repute.Unrated}, false, "unrated"},
		{repute.Score{}, true, "unrated · stale"},
	} {
		if _, text := elements(t, Of("trust", c.score, c.isStale).SVG()); !strings.Contains(text, c.want+"\n") ||
			!strings.Contains(text, "trust\n") {
			t.Errorf("%+v: %q, want %q", c.score, text, c.want)
		}
	}
	if _, text := elements(t, Unknown("x").SVG()); !strings.Contains(text, "unknown") {
		t.Errorf("%q", text)
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a\x00", "a\nb", "\xff", "\u202eright to left", strings.Repeat("x", maxLabel+1)} {
		if _, err := CheckLabel(bad); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"", "trust", `"><script>alert(1)</script>`, "信頼", strings.Repeat("W", maxLabel)} {
		if got, err := CheckLabel(good); err != nil || got != good {
			t.Errorf("%q: %q, %v", good, got, err)
		}
	}
}

// FuzzSVG: whatever the label, the image has the same elements, shows the label and is well-formed.
func FuzzSVG(f *testing.F) {
	for _, s := range []string{"trust", `"><script>`, "]]>&lt;", "信頼", `' onload='`} {
		f.Add(s)
	}
	want := strings.Join([]string{"svg", "title", "rect", "path", "g", "text", "text"}, " ")
	f.Fuzz(func(t *testing.T, label string) {
		label, err := CheckLabel(label)
		if err != nil || label == "" {
			return
		}
		names, text := elements(t, Unknown(label).SVG())
		if strings.Join(names, " ") != want || !strings.Contains(text, label+"\n") {
			t.Errorf("%q: %v, %q", label, names, text)
		}
	})
}
