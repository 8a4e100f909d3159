package crawl

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/store/column"
)

// A list is read through gzip as well, and one that is cut off is an error and not a shorter list.
func TestReadListThroughGzip(t *testing.T) {
	t.Parallel()
	var zip bytes.Buffer
	w := gzip.NewWriter(&zip)
	_, _ = w.Write([]byte("a.example\nb.example\n"))
	_ = w.Close()
	for size, want := range map[int]string{zip.Len(): "a.example b.example", zip.Len() - 4: "", 5: ""} {
		got, err := readList(&cli.Program{Stdin: bytes.NewReader(zip.Bytes()[:size])}, "-")
		if strings.Join(got, " ") != want || (err == nil) != (want != "") {
			t.Errorf("%d of %d bytes: %q, %v", size, zip.Len(), got, err)
		}
	}
	if _, err := readList(&cli.Program{}, "/nowhere/list"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("no file: %v", err)
	}
}

// Whatever a list has, its domains are those that are stored: each once, in lower case, none an address, none with what
// belongs to a URL, and read again they are the same list.
func FuzzParseList(f *testing.F) {
	for _, text := range []string{"", "a.example\n", "# a\n\na.example # b\r\nA.EXAMPLE.\n", "b\u00fccher.example",
		"https://a.example", "127.0.0.1", "0x7f.1", "a..b", "xn--a.example", "\xff.example", "a.example\x00",
		"a.example\n" + strings.Repeat("x", 70_000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		domains, err := parseList(strings.NewReader(text))
		if err != nil {
			if len(domains) != 0 {
				t.Fatalf("%q: %q beside %v", text, domains, err)
			}
			return
		}
		seen := map[string]bool{}
		for _, d := range domains {
			if seen[d] || d != strings.ToLower(d) || len(d) > column.LongestHost ||
				strings.ContainsAny(d, "/:@?# \n\x00") {
				t.Fatalf("%q has %q", text, d)
			}
			seen[d] = true
		}
		again, err := parseList(strings.NewReader(strings.Join(domains, "\n")))
		if err != nil || strings.Join(again, " ") != strings.Join(domains, " ") {
			t.Fatalf("%q is read as %q, and that as %q, %v", text, domains, again, err)
		}
	})
}
