package attack

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"

	"repute/trust"
	"repute/trust/fixed"
)

func zero() *big.Int { return new(big.Int) }

// Detection is how well a score tells bad from good parties of whom the ratings by
// known good ones were taken away.
type Detection struct {
	World string `json:"world"`
	// Tested parties, of which Bad are bad.
	Tested int `json:"tested"`
	Bad    int `json:"bad"`
	// AUC is the chance that a bad party scores below a good one: of the engine, of the plain
	// mean, and the difference with its 95 % interval of a thousand resamples.
	AUC     float64 `json:"auc"`
	MeanAUC float64 `json:"plain_mean_auc"`
	Better  float64 `json:"better_by"`
	Low     float64 `json:"better_by_low"`
	High    float64 `json:"better_by_high"`
	// The same with the first three ratings of each only.
	First3 float64 `json:"first_three_auc"`
	Mean3  float64 `json:"first_three_plain_mean_auc"`
	// Leaving out each rating in turn: the shrunk mean of the others against it.
	Error   float64 `json:"leave_one_out_error"`
	Pearson float64 `json:"leave_one_out_correlation"`
}

// WithoutLabelEdges leaves out what known good parties say of known ones: labels follow
// from it.
func (w *World) WithoutLabelEdges() *World {
	out := *w
	out.Ratings = slices.DeleteFunc(slices.Clone(w.Ratings), func(r Rating) bool {
		return w.Good[r.From] && (w.Good[r.To] || w.Bad[r.To])
	})
	out.Roots = EarlyRoots(out.Ratings, 20)
	return &out
}

// firstOf keeps the first n ratings of each known party.
func (w *World) firstOf(n int) *World {
	out := *w
	out.Ratings = nil
	sorted := slices.Clone(w.Ratings)
	slices.SortStableFunc(sorted, func(a, b Rating) int { return cmp.Compare(a.Time, b.Time) })
	seen := map[int]int{}
	for _, r := range sorted {
		if w.Good[r.To] || w.Bad[r.To] {
			if seen[r.To]++; seen[r.To] > n {
				continue
			}
		}
		out.Ratings = append(out.Ratings, r)
	}
	return &out
}

// Ageless are parameters without the memory of time, for recorded ratings of many years.
func Ageless(p trust.Params) *trust.Params {
	p.Evidence.HalfLifeDays = 36500
	return &p
}

// Undated are parameters without the memory of time and without heavier bad news, for
// recorded ratings of many years.
func Undated(p trust.Params) *trust.Params {
	p.Evidence.HalfLifeDays = 36500
	p.Negative.Factors = []fixed.Fixed{fixed.One}
	return &p
}

// Detect measures detection on a world with known good and bad parties.
func Detect(w *World, p *trust.Params) Detection {
	reduced := w.WithoutLabelEdges()
	d := Detection{World: w.Name}
	engine, plain, bad := reduced.scores(p)
	d.Tested = len(bad)
	for _, b := range bad {
		if b {
			d.Bad++
		}
	}
	d.AUC, d.MeanAUC = auc(engine, bad), auc(plain, bad)
	d.Better = d.AUC - d.MeanAUC
	d.Low, d.High = interval(engine, plain, bad)
	early := reduced.firstOf(3)
	engine, plain, bad = early.scores(p)
	d.First3, d.Mean3 = auc(engine, bad), auc(plain, bad)
	d.Error, d.Pearson = leaveOneOut(w)
	return d
}

// scores gives engine's and plain means of known parties that are no roots and have a
// rating left.
func (w *World) scores(p *trust.Params) (engine, plain []float64, bad []bool) {
	e := NewEngine(w, p)
	known := append(sortedKeys(w.Good), sortedKeys(w.Bad)...)
	for _, party := range known {
		if slices.Contains(w.Roots, party) || len(e.about[party]) == 0 {
			continue
		}
		engine = append(engine, float64(e.Score(party).Mean))
		plain = append(plain, mean(w.opinions(party)))
		bad = append(bad, w.Bad[party])
	}
	return engine, plain, bad
}

// auc is the chance that a bad one has the lower score, ties count half.
func auc(scores []float64, bad []bool) float64 {
	var wins, pairs float64
	for i, b := range bad {
		if !b {
			continue
		}
		for j, other := range bad {
			if other {
				continue
			}
			pairs++
			switch {
			case scores[i] < scores[j]:
				wins++
			case scores[i] == scores[j]:
				wins += 0.5
			}
		}
	}
	return wins / pairs
}

// interval resamples parties and gives the middle 95 % of the difference of both AUCs.
func interval(a, b []float64, bad []bool) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	var diffs []float64
	n := len(bad)
	x, y, z := make([]float64, n), make([]float64, n), make([]bool, n)
	for range 1000 {
		for i := range n {
			k := rng.IntN(n)
			x[i], y[i], z[i] = a[k], b[k], bad[k]
		}
		diffs = append(diffs, auc(x, z)-auc(y, z))
	}
	slices.Sort(diffs)
	return diffs[25], diffs[974]
}

// leaveOneOut predicts each rating from the others of the same party, shrunk to the
// global mean: the error and the correlation.
func leaveOneOut(w *World) (rmse, pearson float64) {
	const k = 3
	global := 0.0
	type total struct{ sum, n float64 }
	of := map[int]*total{}
	for _, r := range w.Ratings {
		global += r.Value / float64(len(w.Ratings))
		if of[r.To] == nil {
			of[r.To] = &total{}
		}
		of[r.To].sum += r.Value
		of[r.To].n++
	}
	var x, y []float64
	for _, r := range w.Ratings {
		t := of[r.To]
		x = append(x, (k*global+t.sum-r.Value)/(k+t.n-1))
		y = append(y, r.Value)
	}
	var square, xx, yy, xy float64
	mx, my := mean(x), mean(y)
	for i := range x {
		square += (x[i] - y[i]) * (x[i] - y[i])
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
		xy += (x[i] - mx) * (y[i] - my)
	}
	return math.Sqrt(square / float64(len(x))), xy / math.Sqrt(xx*yy)
}
