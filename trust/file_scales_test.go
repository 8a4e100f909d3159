package trust

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/graph"
	"repute/trust/rating"
)

// scalesWith are the scales of those who wrote these rows, of which files state some.
func scalesWith(p *rating.Params, files []rating.FileScale, rows ...rating.Row) *rating.Scales {
	r := graph.NewReader(repute.Block{Time: newWorld().evidence().Block.Time}, nil, nil, p)
	r.StateScales(files)
	for i, row := range rows {
		token := repute.TokenID{uint64(i)}
		r.Agent(token, 0, address(5000+i), common.Address{})
		r.Rating(token, row)
	}
	r.Build()
	return r.Scales()
}

// readingOf is what a rating counts as: its opinion, or why it does not count.
func readingOf(w *world, scales *rating.Scales, row rating.Row) string {
	e := w.evidence(row)
	e.Scales = scales
	got := NewScorer(e.Weights, w.params).Explain(e)
	if len(got.Excluded) == 1 {
		return string(got.Excluded[0].Reason)
	}
	raw, _ := got.Contributions[0].Opinion.MarshalJSON()
	return string(raw)
}

func TestFilesStateScales(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, c := range []struct {
		top   int     // that the files state
		wrote []int64 // thousandths
		value int64   // of the rating
		want  string
	}{
		{5, nil, 4000, "0.600000"},                                // one file tells what no other rating does
		{5, []int64{4000, 3000}, 5000, "1.000000"},                // too few values to infer it
		{100, []int64{5000, 5000, 5000, 5000}, 5000, "-0.900000"}, // the file comes before what values let infer
		{10, []int64{5000, 5000, 5000, 5000}, 5000, "0.000000"},   // the same
		{20, []int64{18_000}, 15_000, "0.500000"},                 // a scale that the table does not know
		{20, []int64{18_000}, 5000, "-0.500000"},                  // also for small values
		{5, []int64{80_000}, 4000, "scale"},                       // a value beyond it: several scales
		{5, []int64{80_000}, 80_000, "0.600000"},                  // which can be told is read as ever
		{0, []int64{5000, 5000, 5000, 5000}, 5000, "scale"},       // files that contradict each other
		{0, nil, 80_000, "0.600000"},                              // which can be told is read as ever
		{5, nil, 0, "-1.000000"},                                  // the least of every scale
		{5, nil, -1000, "out-of-range"},
	} {
		var rows []rating.Row
		for _, v := range append(slices.Clone(c.wrote), c.value) {
			rows = append(rows, amountRow(0, "starred", v))
		}
		scales := scalesWith(w.params, []rating.FileScale{{Rater: address(0), Tag: "starred", Top: c.top}}, rows...)
		if got := readingOf(w, scales, rows[len(rows)-1]); got != c.want {
			t.Errorf("scale of %d, wrote %v, %d: %s, want %s", c.top, c.wrote, c.value, got, c.want)
		}
	}
	later := scalesWith(w.params, []rating.FileScale{{Rater: address(0), Tag: "starred", Top: 5}},
		amountRow(0, "starred", 4000))
	if got := readingOf(w, later, amountRow(0, "starred", 80_000)); got != "scale" {
		t.Errorf("beyond the stated scale, after the epoch: %s", got)
	}
	other := scalesWith(w.params, []rating.FileScale{{Rater: address(0), Tag: "uptime", Top: 5},
		{Rater: address(0), Tag: "nobody's", Top: 5}}, amountRow(0, "uptime", 4000))
	if other.Size() != 0 {
		t.Errorf("tags without several scales: %+v", other)
	}
}

// Files of some raters change nothing for others: no rating of theirs turns from praise into blame, or changes at all.
func TestFilesDoNotChangeOtherRaters(t *testing.T) {
	t.Parallel()
	w := newWorld()
	rapid.Check(t, func(t *rapid.T) {
		var rows []rating.Row
		for range rapid.IntRange(1, 30).Draw(t, "ratings") {
			rows = append(rows, amountRow(rapid.IntRange(0, 3).Draw(t, "rater"),
				rapid.SampledFrom([]string{"starred", "successRate"}).Draw(t, "tag"),
				rapid.SampledFrom([]int64{0, 500, 1000, 3000, 5000, 9000, 10_000, 80_000, 100_000}).Draw(t, "value")))
		}
		var files []rating.FileScale
		for _, tag := range []string{"starred", "successRate"} {
			if rapid.Bool().Draw(t, "states "+tag) {
				files = append(files, rating.FileScale{Rater: address(0), Tag: tag,
					Top: rapid.SampledFrom([]int{0, 1, 5, 10, 20, 100}).Draw(t, "top")})
			}
		}
		before, after := scalesWith(w.params, nil, rows...), scalesWith(w.params, files, rows...)
		for i, r := range rows {
			was, is := readingOf(w, before, r), readingOf(w, after, r)
			if was != is && !slices.ContainsFunc(files,
				func(f rating.FileScale) bool { return f.Rater == r.Rater && f.Tag == r.Tag1 }) {
				t.Fatalf("rating %d of %v: %s, with files %v %s", i, fmt.Sprint(r.Rater, r.Tag1, r.Amount), was,
					files, is)
			}
		}
	})
}
