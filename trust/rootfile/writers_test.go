package rootfile_test

import (
	"bytes"
	"errors"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/rating"
	"repute/trust/rootfile"
)

const writer = `version: mine-1
writers:
  - chain: base
    address: "` + alice + `"
    operator: Example Watch
    evidence:
      - {link: "https://example.com/addresses", date: "2025-11-01", method: compared ten ratings}
    weight: 0.25
    expires: 2026-06-30
    tags:
      - tags: [grade]
        channel: quality
        unit: school grade
        better: lower
        range: [1, 6]
        weight: 1
        curve: [[1, 1], [6, -1]]
        reason: "https://example.com/method"
`

func TestWriters(t *testing.T) {
	t.Parallel()
	roots, err := rootfile.ReadRoots(strings.NewReader(writer), options())
	if err != nil || len(roots) != 1 {
		t.Fatalf("%+v, %v", roots, err)
	}
	r := roots[0]
	if r.ChainID != 8453 || r.Line != 3 || r.Address != common.HexToAddress(alice) ||
		r.Class != repute.ReviewedWriter ||
		r.Weight != repute.RootUnit/4 || r.Expires != time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC) ||
		r.Reason != "Example Watch: https://example.com/addresses (2025-11-01, compared ten ratings)" ||
		!strings.Contains(r.Rules, `"grade"`) {
		t.Errorf("%+v", r)
	}
	for old, c := range map[string]struct{ with, want string }{
		`address: "` + alice + `"`:  {`address: "0x12"`, "line 3, address"},
		"operator: Example Watch":   {"operator: ''", "line 3, operator"},
		"https://example.com/add":   {"http://example.com/add", "line 3, evidence[0].link"},
		"2025-11-01":                {"November", "line 3, evidence[0].date"},
		"method: compared ten":      {"methods: compared ten", "line 3, entry"},
		"weight: 0.25":              {"weight: 0.6", "line 3, weight"},
		"    expires: 2026-06-30\n": {"", "line 3, expires"},
		"2026-06-30":                {"2025-06-30", "line 3, expires"},
		"channel: quality":          {"channel: beauty", "line 3, tags: writers[0].tags[0].channel"},
		"better: lower":             {"better: higher", "line 3, tags: writers[0].tags[0].curve[1]"},
		"range: [1, 6]":             {"ranges: [1, 6]", "line 3, tags"},
		"version: mine-1":           {"versions: mine-1", "file"},
	} {
		if !strings.Contains(writer, old) {
			t.Fatalf("no %s", old)
		}
		_, err := rootfile.ReadRoots(strings.NewReader(strings.Replace(writer, old, c.with, 1)), options())
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.with, err, c.want)
		}
	}
	twice := writer + strings.SplitAfterN(writer, "writers:\n", 2)[1]
	if _, err := rootfile.ReadRoots(strings.NewReader(twice), options()); err == nil ||
		!strings.Contains(err.Error(), "line 3 already") {
		t.Errorf("twice: %v", err)
	}
}

// The shipped list is empty: nobody is in it without evidence that anybody can check.
func TestShippedWriters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("writers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if writers, err := rootfile.ReadRoots(bytes.NewReader(text), rootfile.Options{}); err != nil || len(writers) != 0 {
		t.Errorf("%v, %v", writers, err)
	}
}

// No bytes make the reader of writers fail otherwise than by an error, and what it accepts is bounded.
func FuzzReadWriters(f *testing.F) {
	f.Add(writer)
	f.Add("writers: [{chain: 1}]")
	f.Add(`{"writers": [[]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		roots, err := rootfile.ReadRoots(strings.NewReader("writers:\n"+text), rootfile.Options{ChainID: 1})
		if err != nil {
			return
		}
		for _, r := range roots {
			if r.Class != repute.ReviewedWriter || r.Weight > repute.MaxWriterWeight || r.Expires.IsZero() {
				t.Fatalf("%+v", r)
			}
		}
	})
}

// Writers whose rules fit the table one by one, and not together, are refused as a set; those that have expired do not
// count.
func TestWritersFitTheTableTogether(t *testing.T) {
	t.Parallel()
	roots, err := rootfile.ReadRoots(strings.NewReader(writer), options())
	if err != nil {
		t.Fatal(err)
	}
	var set []repute.TrustRoot
	for i := range 81 {
		w := roots[0].TrustRoot
		w.Address = common.BigToAddress(big.NewInt(int64(1000 + i)))
		set = append(set, w)
	}
	if err := options().CheckSet(set[:1]); err != nil {
		t.Error(err)
	}
	if err := options().CheckSet(set); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("81 writers: %v", err)
	}
	for i := range set[1:] {
		set[1+i].Expires = options().Now
	}
	if err := options().CheckSet(set); err != nil {
		t.Errorf("80 of them have expired: %v", err)
	}
}

// The configured table decides: a writer may use a channel that it alone has.
func TestWritersFitTheConfiguredTable(t *testing.T) {
	t.Parallel()
	_, tags := rating.DefaultFiles()
	own, err := rating.ReadParams(nil, bytes.Replace(tags, []byte(`"channels": [`),
		[]byte(`"channels": [{"name": "marks", "use": "score"},`), 1))
	if err != nil {
		t.Fatal(err)
	}
	mine := strings.Replace(writer, "channel: quality", "channel: marks", 1)
	o := options()
	if _, err := rootfile.ReadRoots(strings.NewReader(mine), o); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a channel that the table lacks: %v", err)
	}
	o.Params = own
	roots, err := rootfile.ReadRoots(strings.NewReader(mine), o)
	if err != nil {
		t.Fatalf("a channel of its own: %v", err)
	}
	set := []repute.TrustRoot{roots[0].TrustRoot}
	if err := o.CheckSet(set); err != nil {
		t.Errorf("the set: %v", err)
	}
	if err := options().CheckSet(set); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("the set by the table of this project: %v", err)
	}
}
