package rootfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/store/rootdb"
	"repute/trust/rootfile"
)

// drawRoots draws different roots as a file may state them.
func drawRoots(t *rapid.T) (out []rootfile.Root) {
	numbers := rapid.SliceOfNDistinct(rapid.ByteRange(1, 200), 1, 6, rapid.ID[byte]).Draw(t, "addresses")
	for _, n := range numbers {
		r := rootfile.Root{ChainID: rapid.Uint64Range(1, 1<<40).Draw(t, "chain")}
		r.Address, r.Reason = common.Address{19: n}, rapid.SampledFrom([]string{"r", "an auditor: see #5",
			"\"quoted\", ümlaut", "0x12", "null", "1e3", "2030-01-31"}).Draw(t, "reason")
		r.Weight = rapid.Uint64Range(1, rootdb.MaxRootWeight).Draw(t, "weight")
		if rapid.Bool().Draw(t, "expires") {
			r.Expires = time.Unix(rapid.Int64Range(1_800_000_000, 9_000_000_000).Draw(t, "at"), 0).UTC()
		}
		out = append(out, r)
	}
	return out
}

// membersOf returns the members of an entry with their texts as JSON, in the order of the documentation.
func membersOf(r rootfile.Root) (out [][2]string) {
	quoted := func(s string) string {
		raw, _ := json.Marshal(s) // a text is always JSON
		return string(raw)
	}
	out = [][2]string{{"chain", fmt.Sprint(r.ChainID)}, {"address", quoted(r.Address.Hex())},
		{"weight", rootfile.FormatWeight(r.Weight)}, {"reason", quoted(r.Reason)}}
	if !r.Expires.IsZero() {
		out = append(out, [2]string{"expires", quoted(r.Expires.Format(time.RFC3339))})
	}
	return out
}

// TestFormsAgree: the same roots in all forms of a file are read as the same roots, whatever their reasons look like to
// YAML.
func TestFormsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := drawRoots(t)
		var lines, blocks, whole []string
		for _, r := range want {
			var inline, block []string
			for _, m := range membersOf(r) {
				inline, block = append(inline, fmt.Sprintf("%q:%s", m[0], m[1])), append(block, m[0]+": "+m[1])
			}
			lines = append(lines, "{"+strings.Join(inline, ",")+"}")
			blocks = append(blocks, "- "+strings.Join(block, "\n  "))
		}
		whole = append(whole, "{\n\"version\": \"1\",\n\"roots\": [", strings.Join(lines, ",\n"), "]}")
		list := strings.Join(blocks, "\n") + "\n"
		for name, text := range map[string]string{"lines": strings.Join(lines, "\n"),
			"lines with a mark": "\ufeff" + strings.Join(lines, "\r\n\r\n"), "a list": list,
			"a member": "method: by hand\nroots:\n" + list + "version: 7\n", "JSON": strings.Join(whole, "\n")} {
			got, err := rootfile.ReadRoots(strings.NewReader(text), rootfile.Options{})
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: %d roots, %v of\n%s", name, len(got), err, text)
			}
			for i := range got {
				if got[i].TrustRoot != want[i].TrustRoot || got[i].ChainID != want[i].ChainID || got[i].Line < 1 {
					t.Fatalf("%s: %+v, want %+v", name, got[i], want[i])
				}
			}
		}
	})
}

// TestWeightsAreExact: a weight is what is written, or refused, and never rounded.
func TestWeightsAreExact(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"": 1_000_000, "1": 1_000_000, "0.000001": 1, "1000": 1_000_000_000,
		"1000.000000": 1_000_000_000, "0.1": 100_000, "007.5": 7_500_000} {
		if got, err := rootfile.ParseWeight(text); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, bad := range []string{"0", "0.0", "-1", "+1", "1.", ".5", "1,5", "1e3", " 1", "1 ", "0x1", "0.0000001", "1_0",
		"1000.000001", "65536", "99999999999999999999", "1.2.3", "1.-5", "1.+5", "NaN", "½"} {
		_, err := rootfile.ParseWeight(bad)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "weight" || input.Hint == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for w, want := range map[uint64]string{1: "0.000001", 1_000_000: "1", 250_000: "0.25", 10_000_000: "10"} {
		if got := rootfile.FormatWeight(w); got != want {
			t.Errorf("%d is written %s", w, got)
		}
	}
}

// TestExpiry: a root ends at a moment that everybody reads alike, and one that has ended is refused.
func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "2026-01-02": now.AddDate(0, 0, 1),
		"2026-01-01T00:00:01Z": now.Add(time.Second), "2026-01-01T01:00:00-01:00": now.Add(2 * time.Hour)} {
		got, err := rootfile.ParseExpiry(text, now)
		if err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{"2026-01-01": "is past", "2026-01-01T01:00:00+01:00": "is past",
		"2026-01-02T00:00:00.5Z": "is no time", "2026-13-01": "is no time", "soon": "is no time",
		"1969-12-31": "is out of range", "0001-01-01": "is out of range", strings.Repeat("9", 100): "is no time"} {
		_, err := rootfile.ParseExpiry(text, now)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "expires" || !strings.Contains(input.Reason, says) ||
			len(input.Reason) > 100 {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := rootfile.ParseExpiry("2020-01-01", time.Time{}); err != nil {
		t.Errorf("without a time to compare with: %v", err)
	}
}

// TestSameEntries: an address twice on a chain is refused with both lines, and on another chain it is another root.
func TestSameEntries(t *testing.T) {
	t.Parallel()
	one := func(chain int, address string) string {
		return fmt.Sprintf(`{"chain":%d,"address":"%s","reason":"r"}`, chain, address) + "\n"
	}
	roots, err := rootfile.ReadRoots(strings.NewReader(one(1, alice)+one(8453, alice)+one(1, bob)), options())
	if err != nil || len(roots) != 3 || roots[2].Line != 3 {
		t.Errorf("%+v, %v", roots, err)
	}
	text := one(1, alice) + "\n" + one(1, strings.ToUpper(alice[2:])) + one(1, bob)
	_, err = rootfile.ReadRoots(strings.NewReader(text), options())
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("an address in another form: %v", err)
	}
	_, err = rootfile.ReadRoots(strings.NewReader(one(1, alice)+"\n\n"+one(8453, alice)+one(1, alice)), options())
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "line 5, entry") ||
		!strings.Contains(err.Error(), "stands on line 1 already") {
		t.Errorf("an address twice: %v", err)
	}
}

// TestYAMLTricks: aliases, merge keys and nested values of YAML are no entries, so that a file says what it shows.
func TestYAMLTricks(t *testing.T) {
	t.Parallel()
	entry := "  - {chain: 1, address: " + alice + ", reason: r"
	for text, says := range map[string]string{
		"roots:\n  - &a {chain: 1, address: " + alice + ", reason: r}\n  - *a\n": "is no group of members",
		"roots:\n" + entry + ", <<: {weight: 5}}\n":                              "is no member of an entry",
		"roots:\n" + entry + ", weight: [1]}\n":                                  "is neither text nor a number",
		"roots:\n" + entry + ", reason: again}\n":                                "stands twice",
		"roots: {a: 1}\n":         "is unknown here, or no list",
		"roots: 5\n":              "is unknown here, or no list",
		"- - 1\n":                 "is no group of members",
		"roots:\n" + entry + "\n": "did not find expected",
	} {
		_, err := rootfile.ReadRoots(strings.NewReader(text), options())
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
	for _, empty := range []string{"", "\n\n", "# nothing\n", "roots:\n", "roots: []\n", "[]"} {
		if roots, err := rootfile.ReadRoots(strings.NewReader(empty), options()); err != nil || len(roots) != 0 {
			t.Errorf("%q: %+v, %v", empty, roots, err)
		}
	}
}
