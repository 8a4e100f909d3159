package rootfile_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/store/rootdb"
	"repute/trust/rootfile"
)

const (
	alice = "0x1111111111111111111111111111111111111111"
	bob   = "0x2222222222222222222222222222222222222222"
)

func options() rootfile.Options {
	return rootfile.Options{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Chain: func(name string) (uint64, bool) { return 8453, name == "base" }}
}

// All ways of writing the same say the same.
func TestForms(t *testing.T) {
	for name, text := range map[string]string{
		"yaml": "version: mine-1\nroots:\n  - chain: base\n    address: " + alice + "\n    reason: an auditor\n" +
			"  - {chain: 1, address: '" + bob + "', weight: 0.25, reason: a market, expires: 2030-01-31}\n",
		"list": "- chain: 8453\n  address: " + alice + "\n  reason: an auditor\n  weight: 1.0\n" +
			"- chain: 1\n  address: " + bob +
			"\n  weight: 0.250000\n  reason: a market\n  expires: 2030-01-31T01:00:00+01:00\n",
		"json lines": `{"chain":"base","address":"` + alice + `","weight":"1","reason":"an auditor"}` + "\n\n" +
			`{"chain":1,"address":"` + bob + `","weight":0.25,"reason":"a market","expires":"2030-01-31"}`,
		"json": "{\n\"roots\": [\n" + `{"chain":8453,"address":"` + alice + `","reason":"an auditor","expires":null},` +
			`{"chain":"1","address":"` + bob + `","weight":0.25,"reason":"a market","expires":"2030-01-31"}]}`,
		"json in one line": `{"roots":[{"chain":8453,"address":"` + alice + `","reason":"an auditor"},` +
			`{"chain":1,"address":"` + bob + `","weight":0.25,"reason":"a market","expires":"2030-01-31"}]}`,
	} {
		roots, err := rootfile.ReadRoots(strings.NewReader(text), options())
		if err != nil || len(roots) != 2 {
			t.Errorf("%s: %v, %v", name, roots, err)
			continue
		}
		want := []repute.TrustRoot{{Address: common.HexToAddress(alice), Weight: repute.RootUnit, Reason: "an auditor"},
			{Address: common.HexToAddress(bob), Weight: repute.RootUnit / 4, Reason: "a market",
				Expires: time.Date(2030, 1, 31, 0, 0, 0, 0, time.UTC)}}
		for i, chain := range []uint64{8453, 1} {
			if roots[i].TrustRoot != want[i] || roots[i].ChainID != chain {
				t.Errorf("%s: %+v", name, roots[i])
			}
		}
	}
}

// Each mistake is told with its line and field.
func TestMistakes(t *testing.T) {
	good := `{"chain":1,"address":"` + alice + `","reason":"r"}`
	entry := func(more string) string { return good + "\n" + `{"chain":1,"reason":"r",` + more + `}` }
	at := `"address":"` + bob + `"`
	for want, text := range map[string]string{
		"line 2, address: not an address":                     entry(`"address":"0x12"`),
		"line 2, address: address checksum is wrong":          entry(`"address":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"`[:52] + `D"`),
		"line 2, entry: root " + alice + " of chain 1 stands": entry(`"address":"` + alice + `"`),
		"line 2, address: is zero":                            entry(`"address":"0x` + strings.Repeat("0", 40) + `"`),
		"line 2, weight: \"0\" is no weight":                  entry(at + `,"weight":0`),
		"line 2, weight: \"-1\" is no weight":                 entry(at + `,"weight":-1`),
		"line 2, weight: \"1e3\" is no weight":                entry(at + `,"weight":1e3`),
		"line 2, weight: \"1000.000001\" is no weight":        entry(at + `,"weight":1000.000001`),
		"line 2, expires: 2025-12-31 is past":                 entry(at + `,"expires":"2025-12-31"`),
		"line 2, expires: \"tomorrow\" is no time":            entry(at + `,"expires":"tomorrow"`),
		"line 2, reason: is missing":                          good + "\n" + `{"chain":1,` + at + `}`,
		"line 2, reason: stands twice":                        entry(at + `,"reason":"again"`),
		"line 2, chain: is missing":                           good + "\n" + `{` + at + `,"reason":"r"}`,
		"line 2, chain: \"mars\" is no chain":                 good + "\n" + `{"chain":"mars",` + at + `,"reason":"r"}`,
		"line 2, \"wieght\": is no member":                    entry(at + `,"wieght":1`),
		"line 2, address: is neither text nor a number":       entry(`"address":[]`),
		"line 2, entry: is no JSON object":                    good + "\n[]",
		"line 2, entry: is cut short":                         good + "\n" + `{"chain":1`,
		"line 2, entry: has something behind the object":      good + "\n" + good + "{}",
		"line 4, weight: \"no\" is no weight": "roots:\n  - {chain: 1, address: " + alice +
			", reason: r}\n\n  - {chain: 1, address: " + bob + ", reason: r, weight: no}\n",
		"line 2, entry: is no group of members": "roots:\n  - " + alice + "\n",
		"line 1, \"rots\": is unknown here":     "rots: []\n",
		"file: has no list roots":               "version: x\n",
		"file: is no list of entries":           "hello",
		"line 2: is longer than 64 KiB": good + "\n" + `{"reason":"` + strings.Repeat("x",
			70_000) + `"}`,
	} {
		_, err := rootfile.ReadRoots(strings.NewReader(text), options())
		if !errors.Is(err, repute.ErrInvalid) || !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	many := strings.Repeat("{}\n", 50)
	if _, err := rootfile.ReadRoots(strings.NewReader(many), options()); err == nil ||
		strings.Count(err.Error(), "line") != 10 {
		t.Errorf("of many mistakes: %v", err)
	}
}

func TestLinks(t *testing.T) {
	o := options()
	o.ChainID = 8453
	text := "links:\n- {a: " + bob + ", b: " + alice + ", reason: one funder, source: 'https://example.com/tx/1'}\n"
	links, err := rootfile.ReadLinks(strings.NewReader(text), o)
	if err != nil || len(links) != 1 || links[0].ChainID != 8453 || links[0].Line != 2 ||
		links[0].Source != "https://example.com/tx/1" {
		t.Errorf("%+v, %v", links, err)
	}
	for want, more := range map[string]string{
		// the other way round
		"line 3, entry: link of":              "- {a: " + alice + ", b: " + bob + ", reason: r, source: s}\n",
		"line 3, link: is of an address with": "- {a: " + alice + ", b: " + alice + ", reason: r, source: s}\n",
		"line 3, source: is missing or longer": "- {a: " + alice +
			", b: 0x3333333333333333333333333333333333333333, reason: r}\n",
	} {
		if _, err := rootfile.ReadLinks(strings.NewReader(text+more), o); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestWeightsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.Uint64Range(1, rootdb.MaxRootWeight).Draw(t, "weight")
		if got, err := rootfile.ParseWeight(rootfile.FormatWeight(w)); err != nil || got != w {
			t.Fatalf("%d as %s is %d, %v", w, rootfile.FormatWeight(w), got, err)
		}
	})
}

// TestOneChain: a command for one chain refuses entries of others, and takes those that name none for its own.
func TestOneChain(t *testing.T) {
	o := rootfile.Options{ChainID: 1, Only: true, Chain: options().Chain}
	mine := `{"address":"` + alice + `","reason":"r"}` + "\n" + `{"chain":1,"address":"` + bob + `","reason":"r"}`
	roots, err := rootfile.ReadRoots(strings.NewReader(mine), o)
	if err != nil || len(roots) != 2 || roots[0].ChainID != 1 || roots[1].ChainID != 1 {
		t.Errorf("%+v, %v", roots, err)
	}
	other := `{"chain":"base","address":"` + alice + `","reason":"r"}`
	if _, err := rootfile.ReadRoots(strings.NewReader(other), o); err == nil ||
		!strings.HasPrefix(err.Error(), "line 1, chain: is 8453, and the command is for chain 1") {
		t.Errorf("an entry of another chain: %v", err)
	}
}

// TestBrokenReads: a file that could not be read to its end is not taken for a shorter one, even if the next read of it
// succeeds.
func TestBrokenReads(t *testing.T) {
	for name, text := range map[string]string{
		"json lines": `{"chain":1,"address":"` + alice + `","reason":"r"}` + "\n",
		"yaml":       "roots:\n- {chain: 1, address: " + alice + ", reason: r}\n",
		"writers":    writer,
		"long":       strings.Repeat("# a comment\n", 10_000) + "roots: []\n",
	} {
		roots, err := rootfile.ReadRoots(iotest.TimeoutReader(strings.NewReader(text)), options())
		if !errors.Is(err, iotest.ErrTimeout) || len(roots) > 0 {
			t.Errorf("%s: %d roots, %v", name, len(roots), err)
		}
	}
	if _, err := rootfile.ReadLinks(iotest.ErrReader(errors.ErrUnsupported), options()); !errors.Is(err,
		errors.ErrUnsupported) {
		t.Errorf("links: %v", err)
	}
}

// Nothing that anybody writes makes the reader fail otherwise than by an error.
func FuzzReadRoots(f *testing.F) {
	f.Add("roots:\n- {chain: 1}")
	f.Add(`{"chain":1}`)
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = rootfile.ReadRoots(strings.NewReader(text), rootfile.Options{})
		_, _ = rootfile.ReadLinks(strings.NewReader(text), rootfile.Options{})
	})
}
