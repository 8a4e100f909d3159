package rating

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/fixed"
)

var update = flag.Bool("update", false, "write docs/reference/tags.md instead of comparing it")

const tagPage = "../../docs/reference/tags.md"

const tagPageHead = `# Tags

The tags of ratings (` + "`tag1`" + `) that count, and how their values are read. This is the table of ` + "`trust/rating/tags.json`" + `:
` + "`repute score tags`" + ` prints it, and ` + "`trust.tags`" + ` in the configuration replaces it. A tag is compared byte by byte.

These ratings do not count in the score: a tag that is not listed (reason ` + "`unknown-tag`" + `), a tag whose channel is not
part of the score (` + "`other-channel`" + `), and a value outside the range (` + "`out-of-range`" + `). ` + "`repute trust coverage`" + ` lists the
most frequent tags that do not count. Reviewed platforms can have [rules of their own](../how-to/roots.md#writers).

The column *other scales end at* lists further scales on which raters write the tag, such as 5 for stars. The
[scale of each rater](../explanation/trust.md#parameters) is inferred.
` + "`go test ./trust/rating -run TagReference -update`" + ` makes this page.

| tag1 | channel, its use | unit | better | range | weight | other scales end at | reason |
|---|---|---|---|---|---|---|---|
`

// docs/reference/tags.md has every rule of the table.
func TestTagReference(t *testing.T) {
	t.Parallel()
	p, err := DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	table := p.Tags
	var page strings.Builder
	page.WriteString(tagPageHead)
	for _, r := range table.Tags {
		var tops []string
		for _, top := range r.Scales {
			tops = append(tops, fmt.Sprint(top))
		}
		limits := "any"
		if len(r.Range) == 2 {
			limits = short(r.Range[0]) + " to " + short(r.Range[1])
		}
		fmt.Fprintf(&page, "| `%s` | %s, %s | %s | %s | %s | %s | %s | %s |\n", strings.Join(r.Tags, "`, `"), r.Channel,
			table.use[r.Channel], r.Unit, r.Better, limits, short(r.Weight), strings.Join(tops, ", "), r.Reason)
	}
	if *update {
		if err := os.WriteFile(tagPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(tagPage); err != nil || string(text) != page.String() {
		t.Errorf("%s differs from the table (%v): go test ./trust/rating -run TagReference -update", tagPage, err)
	}
}

// short is a number without the zeros at its end.
func short(f fixed.Fixed) string {
	b, _ := f.MarshalJSON()
	s := string(b)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// The table has a rule for every tag that published studies of the chains name as frequent.
func TestFrequentTagsAreKnown(t *testing.T) {
	t.Parallel()
	p, err := DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	table := p.Tags
	for tag, use := range map[string]Use{"miner-vouch": UseShown, "trust": UseScore, "trustScore": UseShown,
		"contractRisk": UseShown, "counterparty": UseShown, "activity": UseShown, "longevity": UseShown,
		"starred":  UseScore,
		"liveness": UseGate, "reachable": UseGate, "uptime": UseGate, "successRate": UseScore, "responseTime": UseShown,
		"revenues": UseShown, "tradingYield": UseShown, "personality": UseShown, "knowledge": UseShown,
		"style":        UseShown,
		"health-check": UseGate, "risk-assessment": UseShown, "trade": UseShown, "review": UseScore} {
		if r := table.Rule(tag); r == nil || table.use[r.Channel] != use {
			t.Errorf("%s: %+v, want one that is used as %s", tag, r, use)
		}
	}
	if r := table.Rule("contractRisk"); r.Better != LowerBetter {
		t.Errorf("contractRisk: %s is better", r.Better)
	}
}

// A table that contradicts itself is refused, and the error names the rule.
func TestTagTablesAreRefused(t *testing.T) {
	t.Parallel()
	params, tags := DefaultFiles()
	for _, c := range []struct{ old, with, field string }{
		{`"unit": "points of 5", `, ``, "tags: tags[4].unit"},
		{`"unit": "points of 5", "better": "higher"`, `"unit": "points of 5", "better": "upwards"`,
			"tags: tags[4].better"},
		{`"unit": "points of 5", "better": "higher"`, `"unit": "points of 5", "better": "lower"`,
			"tags: tags[4].curve[1]"},
		{`"unit": "points of 5", "better": "higher"`, `"unit": "points of 5", "better": "neither"`,
			"tags: tags[4].better"},
		{`"range": [0, 5]`, `"range": [0, 6]`, "tags: tags[4].range"},
		{`"range": [0, 5], `, ``, "tags: tags[4].range"},
		{`"range": [0, 10]`, `"range": [10, 0]`, "tags: tags[13].range"},
		{`"range": [0, 10]`, `"range": [0, 5, 10]`, "tags: tags[13].range"},
		{`["health-check"]`, `[]`, "tags: tags[4].tags"},
		{`["health-check"]`, `["health-check", "uptime"]`, "tags: tags[4]"},
		{`["health-check"],
     "channel": "liveness"`, `["health-check"],
     "channel": "health"`, "tags: tags[4].channel"},
		{`"curve": [[0, -1], [5, 0.3]]`, `"curve": [[0, -1], [5, 1.3]]`, "tags: tags[4].curve[1]"},
		{`"reason": "the writers' method is not published"`, `"reason": ""`, "tags: tags[13].reason"},
		{`"scales": [1, 5, 10]`, `"scales": [1, 5, 100]`, "tags: tags[0].scales[2]"},
		{`"validation": {`, `"writers": [{"tags": []}], "validation": {`, "tags: writers[0].address"},
		{`"validation": {`,
			`"writers": [{"address": "0x1111111111111111111111111111111111111111", "tags": [{"tags": ["a"]}]}],
			"validation": {`, "tags: writers[0].tags[0].channel"},
	} {
		if !bytes.Contains(tags, []byte(c.old)) {
			t.Fatalf("tags.json has no %s", c.old)
		}
		_, err := ParseParams(params, bytes.Replace(tags, []byte(c.old), []byte(c.with), 1))
		var wrong *repute.InputError
		if !errors.As(err, &wrong) || wrong.Field != c.field || wrong.Hint == "" {
			t.Errorf("%s: %v, want %s", c.with, err, c.field)
		}
	}
}

// A value that is better by the direction of its rule is never a worse opinion.
func TestOpinionsFollowTheDirection(t *testing.T) {
	t.Parallel()
	p, err := DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	table := p.Tags
	rapid.Check(t, func(t *rapid.T) {
		r := rapid.SampledFrom(table.Tags).Draw(t, "rule")
		draw := func(name string) fixed.Fixed {
			v, _ := fixedAmount(repute.Amount{Value: big.NewInt(rapid.Int64Range(-10_000, 120_000).Draw(t, name)),
				Decimals: 3})
			return v
		}
		low, high := draw("a"), draw("b")
		low, high = min(low, high), max(low, high)
		x, okX := opinionOf(r.Curve, low)
		y, okY := opinionOf(r.Curve, high)
		if okX && okY && (r.Better == HigherBetter && x > y || r.Better == LowerBetter && x < y) {
			t.Fatalf("%v: %v is %v, %v is %v", r.Tags, low, x, high, y)
		}
		inside := len(r.Curve) > 0 && low >= r.Range[0] && low <= r.Range[1]
		if okX != inside {
			t.Fatalf("%v: %v of %v has an opinion: %v", r.Tags, low, r.Range, okX)
		}
	})
}

// No bytes make the reader of a table fail other than with an error, and a table that is read can be used.
func FuzzTagTable(f *testing.F) {
	params, tags := DefaultFiles()
	f.Add(tags)
	f.Add([]byte(`{"version":"x","channels":[{"name":"q","use":"score"}],"tags":[],"validation":{"channel":"q"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseParams(params, text)
		if err != nil {
			return
		}
		for _, r := range p.Tags.rules {
			for _, tag := range r.Tags {
				_ = p.Tags.Readings(common.Address{}, tag, repute.Amount{Value: big.NewInt(5)})
			}
		}
		if _, err := json.Marshal(p.Tags); err != nil {
			t.Fatal(err)
		}
	})
}

// Amounts that fit a word are read as those that do not.
func TestAmountsAreReadAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := repute.Amount{Value: big.NewInt(rapid.Int64().Draw(t, "value")),
			Decimals: uint8(rapid.IntRange(0, 18).Draw(t, "decimals"))}
		got, ok := wordAmount(a)
		if !ok {
			return
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)), nil)
		want, rest := new(big.Int).QuoRem(new(big.Int).Lsh(a.Value, 32), scale, new(big.Int))
		want.Add(want, big.NewInt(int64(rest.Sign())))
		if want.Cmp(big.NewInt(int64(got))) != 0 {
			t.Fatalf("%s: %d, want %s", a.Decimal(), got, want)
		}
	})
}
