package attack

import (
	"math"
	"slices"
)

// baseline is a formula of another scorer, for scale 0 to 100 unless stated otherwise.
type baseline struct {
	name  string
	score func(values []float64) float64 // of opinions -1 to 1 by distinct clients
}

// baselines are the plain ways, and scorers as they publish their formulas. A component that
// needs more than ratings is taken to be zero.
func baselines() []baseline {
	return []baseline{
		{"plain mean", plainMean},
		{"Bayesian mean", bayesianMean},
		{"QuickNode v1.3", quickNode},
		{"nsgoods", nsgoods},
		{"MainStreet", mainStreet},
	}
}

// sum adds values up in their order, so that equal worlds give equal figures.
func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// mean is 0 of none.
func mean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return sum(v) / float64(len(v))
}

// plainMean is the mean of opinions as points, -100 to 100.
func plainMean(v []float64) float64 { return 100 * mean(v) }

// bayesianMean is the mean with three opinions of 0 more.
func bayesianMean(v []float64) float64 { return 100 * sum(v) / (float64(len(v)) + 3) }

// quickNode, without a validation registry: 0.5882 of the mean of values 0 to 100.
func quickNode(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return 0.5882 * (50 + 50*mean(v))
}

// nsgoods counts clients and ratings in addition to their mean, from three clients on. All
// ratings are taken to be of today.
func nsgoods(v []float64) float64 {
	n := float64(len(v))
	if n < 3 {
		return 0
	}
	quality := 50 + 50*mean(v)
	return 0.5*quality + 20*min(1, math.Log1p(n)/math.Log1p(25)) + 15*min(1, math.Log1p(n)/math.Log1p(50)) +
		0.15*quality
}

// mainStreet: jobs on a logarithmic scale, the newest is of today, all that praise succeeded.
func mainStreet(v []float64) float64 {
	n := float64(len(v))
	if n == 0 {
		return 0
	}
	succeeded := 0.0
	for _, x := range v {
		if x > 0 {
			succeeded++
		}
	}
	return min(40, 10*math.Log10(n)) + 15 + 30*succeeded/n*min(1, n/10)
}

// opinions are the values of the ratings of a party.
func (w *World) opinions(party int) (out []float64) {
	for _, r := range w.Ratings {
		if r.To == party {
			out = append(out, r.Value)
		}
	}
	return out
}

// eigenTrust is the seeded walk by itself: the percentile of a party among all. The roots are its seeds. A party that
// nobody praises stays at 0, unless it is a root, and what a party without praise for others has returns to the roots.
func (w *World) eigenTrust(party int) float64 {
	const restart, rounds = 0.15, 60
	n := w.Next()
	given := make([]float64, n)
	for _, r := range w.Ratings {
		given[r.From] += max(0, r.Value)
	}
	t := make([]float64, n)
	seed := func(t []float64, mass float64) {
		for _, root := range w.Roots {
			t[root] += mass / float64(len(w.Roots))
		}
	}
	seed(t, 1)
	for range rounds {
		next := make([]float64, n)
		for _, r := range w.Ratings {
			if r.Value > 0 {
				next[r.To] += (1 - restart) * t[r.From] * r.Value / given[r.From]
			}
		}
		seed(next, 1-sum(next))
		t = next
	}
	return 100 * rank(t, party)
}

// rank is the share of parties below one, 0 to 1. Those with the same value are not below.
func rank(t []float64, party int) float64 {
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	below, _ := slices.BinarySearch(sorted, t[party])
	return float64(below) / float64(len(sorted))
}
