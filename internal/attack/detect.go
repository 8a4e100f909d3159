package attack

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/rating"
)

// Detection is how well a score tells bad from good parties if the ratings that they got from known good ones are
// removed.
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
	// The same with the first three ratings of each only, and roots chosen among these.
	First3 float64 `json:"first_three_auc"`
	Mean3  float64 `json:"first_three_plain_mean_auc"`
	// Shipped are both by the parameters as shipped, by which ratings fade: of each party as of its last rating, on the
	// mean and on the score that users see, which is 0 of an unrated agent.
	Shipped       float64 `json:"shipped_auc"`
	ShippedFirst3 float64 `json:"shipped_first_three_auc"`
	Seen          float64 `json:"shipped_score_auc"`
	SeenFirst3    float64 `json:"shipped_score_first_three_auc"`
	// Leaving out each of Left ratings in turn: the engine's mean of the others against it, and the mean of them shrunk
	// to the global one.
	Left        int     `json:"left_out"`
	Error       float64 `json:"leave_one_out_error"`
	Pearson     float64 `json:"leave_one_out_correlation"`
	MeanError   float64 `json:"leave_one_out_error_of_shrunk_mean"`
	MeanPearson float64 `json:"leave_one_out_correlation_of_shrunk_mean"`
}

// withoutLabelEdges leaves out what known good parties say of known ones: labels follow
// from it.
func (w *World) withoutLabelEdges() *World {
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
func Ageless(p rating.Params) *rating.Params {
	p.Evidence.HalfLifeDays = 36500
	return &p
}

// Undated are parameters without the memory of time and without heavier bad news, for
// recorded ratings of many years.
func Undated(p rating.Params) *rating.Params {
	p.Evidence.HalfLifeDays = 36500
	p.Negative.Factors = []fixed.Fixed{fixed.One}
	return &p
}

// Detect measures detection on a world with known good and bad parties: by p, and by the
// parameters as shipped. So many ratings are left out in turn.
func Detect(w *World, p, shipped *rating.Params, leave int) Detection {
	reduced := w.withoutLabelEdges()
	d := Detection{World: w.Name}
	engine, plain, bad := reduced.scores(p, meanOf)
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
	early.Roots = EarlyRoots(early.Ratings, len(reduced.Roots))
	engine, plain, bad = early.scores(p, meanOf)
	d.First3, d.Mean3 = auc(engine, bad), auc(plain, bad)
	d.Shipped, d.Seen = reduced.shippedAUC(shipped)
	d.ShippedFirst3, d.SeenFirst3 = early.shippedAUC(shipped)
	left := w.sample(leave)
	d.Left = len(left)
	d.Error, d.Pearson = w.leaveOut(left, w.engineWithout(p))
	d.MeanError, d.MeanPearson = w.leaveOut(left, w.meanWithout())
	return d
}

// meanOf is the mean of a result, which is known also where an agent is unrated.
func meanOf(r *trust.Result) trust.Points { return r.Mean }

// shippedAUC is the AUC of means and of scores, of each known party as of its last rating.
func (w *World) shippedAUC(p *rating.Params) (means, scores float64) {
	e, now := NewEngine(w, p), w.Now
	defer func() { w.Now = now }()
	var mean, score []float64
	var bad []bool
	for _, party := range w.tested(e) {
		w.Now = 0
		for _, i := range e.about[party] {
			w.Now = max(w.Now, w.Ratings[i].Time)
		}
		r := e.Score(party)
		mean, score, bad = append(mean, float64(r.Mean)), append(score, float64(r.Score)), append(bad, w.Bad[party])
	}
	return auc(mean, bad), auc(score, bad)
}

// tested are the known parties that are no roots and have a rating left.
func (w *World) tested(e *Engine) []int {
	known := slices.Concat(slices.Sorted(maps.Keys(w.Good)), slices.Sorted(maps.Keys(w.Bad)))
	return slices.DeleteFunc(known, func(party int) bool {
		return slices.Contains(w.Roots, party) || len(e.about[party]) == 0
	})
}

// sample are n ratings, drawn once and for all: figures of different versions of the engine are of the same ratings.
func (w *World) sample(n int) []int {
	return rand.New(rand.NewPCG(3, 1500)).Perm(len(w.Ratings))[:min(n, len(w.Ratings))]
}

// engineWithout predicts a rating by the engine's mean of the same party in a world without it. Trust is walked anew
// for each prediction, because the rating may be an edge. The roots are those of the whole world.
func (w *World) engineWithout(p *rating.Params) func(int) float64 {
	roots := EarlyRoots(w.Ratings, 20)
	return func(i int) float64 {
		left := *w
		left.Roots, left.Ratings = roots, slices.Concat(w.Ratings[:i], w.Ratings[i+1:])
		return float64(NewEngine(&left, p).Score(w.Ratings[i].To).Mean) / 100_000
	}
}

// scores returns a value of the engine's results, and plain means, of known parties that are no roots and have a
// rating left.
func (w *World) scores(p *rating.Params, of func(*trust.Result) trust.Points) (engine, plain []float64, bad []bool) {
	e := NewEngine(w, p)
	for _, party := range w.tested(e) {
		r := e.Score(party)
		engine = append(engine, float64(of(&r)))
		plain = append(plain, mean(w.opinions(party)))
		bad = append(bad, w.Bad[party])
	}
	return engine, plain, bad
}

// auc is the chance that a bad one has the lower score, ties count half. It is NaN where all are good or all are bad.
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

// interval resamples parties and returns the middle 95 % of the difference of both AUCs. The draws are seeded: equal
// scores give an equal interval.
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

// meanWithout predicts a rating by the others of the same party, shrunk to the global mean, which counts as three
// ratings. The global mean has the predicted rating too, which is one of many thousands.
func (w *World) meanWithout() func(int) float64 {
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
	return func(i int) float64 {
		r := w.Ratings[i]
		t := of[r.To]
		return (k*global + t.sum - r.Value) / (k + t.n - 1)
	}
}

// leaveOut compares predictions of some ratings with them: the error and the correlation.
func (w *World) leaveOut(some []int, predict func(int) float64) (rmse, pearson float64) {
	var x, y []float64
	for _, i := range some {
		x, y = append(x, predict(i)), append(y, w.Ratings[i].Value)
	}
	return compare(x, y)
}

// compare is the error of predictions x of values y, and their correlation.
func compare(x, y []float64) (rmse, pearson float64) {
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
