package attack

import (
	"cmp"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"repute/trust/rating"
)

// alpha is the recorded world of Bitcoin traders, nil where the data is absent.
func alpha(t *testing.T) *World {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	w, err := Load(filepath.Join(dir, "trust/soc-sign-bitcoinalpha.csv"), filepath.Join(dir, "trust/alpha_gt.csv"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// worlds are a generated one and, where its data is there, the recorded one, whose
// ratings use the lowest tenth of their scale and span years.
func worlds(t *testing.T) map[*World]*rating.Params {
	t.Helper()
	out := map[*World]*rating.Params{Population(1500, 60, 1): params(t)}
	if w := alpha(t); w != nil {
		w = w.Bend(0.3)
		w.Roots = EarlyRoots(w.Ratings, 20)
		out[w] = Ageless(*params(t))
	}
	return out
}

func params(t testing.TB) *rating.Params {
	t.Helper()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The targets that the engine is built for, on both worlds.
func TestAttacks(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	for w, p := range worlds(t) {
		b := NewBench(w, p, 1)
		for _, n := range []int{1, 10, 100, 1000, 10000} {
			check(t, b.FreshSybils(n), 10)
		}
		check(t, b.Camouflage(1000), 10)
		for n, most := range map[int]float64{1: 30, 2: 50} {
			check(t, b.CompromisedRoots(n), most)
			check(t, b.CompromisedRaters(n), most)
		}
		check(t, b.LowEdges(), 30)
		check(t, b.Bribed(3), 50)
		check(t, b.WeakInChannels(5, true), 50)
		for _, n := range []int{1, 10, 1000, 10000} {
			checkDrop(t, b.SlanderBySybils(n), 10)
		}
		for n, most := range map[int]float64{1: 10, 3: 27} {
			checkDrop(t, b.SlanderByRaters(n), most)
		}
		if rated, all := b.Rated(); all == 0 || rated*10 < all*9 {
			t.Errorf("%s: %d of %d well-known good parties are rated", w.Name, rated, all)
		}
	}
}

func checkDrop(t *testing.T, d Drop, most float64) {
	t.Helper()
	t.Logf("%s %s by %d: mean %.2f worst %.2f %v", d.World, d.Attack, d.Size, d.Mean, d.Worst, d.Baselines)
	if d.Worst > most || d.Rejected > 0 || d.Victims == 0 {
		t.Errorf("%s by %d: %+v, most is %.0f", d.Attack, d.Size, d, most)
	}
}

func check(t *testing.T, o Outcome, most float64) {
	t.Helper()
	t.Logf("%s %s %d: mean %.2f score %.2f paths %d %v", o.World, o.Attack, o.Size, o.Mean, o.Score, o.Paths,
		o.Baselines)
	if o.Mean > most {
		t.Errorf("%s: %d identities reach %.2f, most is %.0f", o.Attack, o.Size, o.Mean, most)
	}
}

func TestDetection(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	w := alpha(t)
	if w == nil {
		t.Skip("test data absent: trust/soc-sign-bitcoinalpha.csv")
	}
	d := Detect(w, Undated(*params(t)), params(t), 150)
	t.Logf("%+v", d)
	if d.AUC < 0.90 || d.First3 < 0.82 || d.Low <= 0 {
		t.Errorf("detection is worse than it was: %+v", d)
	}
	if d.Left != 150 || d.Error > 1.05*d.MeanError {
		t.Errorf("prediction is worse than that of a shrunk mean: %+v", d)
	}
}

// One compromised party and many that weigh next to nothing are worth one party.
func TestDust(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	for w, p := range worlds(t) {
		b := NewBench(w, p, 1)
		if len(b.dust(100)) == 0 {
			t.Errorf("%s has no dust", w.Name)
		}
		for _, n := range []int{0, 20, 100} {
			for root, most := range map[bool]float64{true: 30, false: 32} {
				o := b.Dust(n, root)
				check(t, o, most)
				if o.Tier > 1 {
					t.Errorf("%s with %d: tier %d", o.Attack, n, o.Tier)
				}
			}
			checkDrop(t, b.SlanderByDust(n), 10)
		}
	}
}

// Praise for honest work makes nobody a judge, however those who got it praise each other.
func TestShells(t *testing.T) {
	for w, p := range worlds(t) {
		b := NewBench(w, p, 1)
		for _, shape := range []Shape{Star, Clique, Layers} {
			for n, most := range map[int]float64{6: 30, 12: 30, 40: 50} {
				for _, agents := range []int{1, 100} {
					o := b.Shells(n, agents, shape)
					check(t, o, most)
					if n <= 12 && o.Tier > 1 || o.Tier >= 3 {
						t.Errorf("%s, %d: tier %d", o.Attack, n, o.Tier)
					}
				}
			}
		}
	}
}

// Praise on another scale than the tag's is no blame.
func TestScales(t *testing.T) {
	for w, p := range worlds(t) {
		if got := NewBench(w, p, 1).Scales(); got.Inferred > 2 || got.AsWritten < 20 {
			t.Errorf("%s: %+v", w.Name, got)
		}
	}
}

// What a root said long ago fades.
func TestVouchesAge(t *testing.T) {
	w := VouchAge(params(t), 8)
	if w[0] != 1 || w[4] > 0.1 || w[4] == 0 ||
		!slices.IsSortedFunc(w, func(a, b float64) int { return cmp.Compare(b, a) }) {
		t.Errorf("%v", w)
	}
}

// What always holds, on random agents.
func TestBounds(t *testing.T) {
	for w, p := range worlds(t) {
		if got := NewBench(w, p, 1).Bounds(500); got.Strangers > 1 || got.Lowered > 0 || got.Unrestored > 0 ||
			got.MostMoved == 0 {
			t.Errorf("%s: %+v", w.Name, got)
		}
	}
}

func TestOnOff(t *testing.T) {
	o := MeasureOnOff(params(t))
	t.Logf("%d, %d, %d days", o.Below50, o.Below10, o.Recovery)
	if o.Below50 > 3 || o.Below10 > 12 || o.Recovery < 60 {
		t.Errorf("%+v", o)
	}
}

func TestWhitewash(t *testing.T) {
	for w, p := range worlds(t) {
		got := NewBench(w, p, 1).Whitewash()
		t.Logf("%s: %+v", w.Name, got)
		if got.Old >= -10 || got.Worst() > got.Old || got.BestTier != 0 || got.Unlinked != 0 || got.Service ||
			got.Praised >= 50 {
			t.Errorf("%s: %+v", w.Name, got)
		}
		if min(got.Gifted, got.GiftedFirst, got.Customer) < got.Praised {
			t.Errorf("%s: innocent and limited: %+v", w.Name, got)
		}
		for _, c := range got.Cases {
			if c.Score > c.Bad || c.Bad > -10 || c.Unlimited < c.Free-2 || c.Free < 30 {
				t.Errorf("%s: %+v", w.Name, c)
			}
		}
		if s := got.Shared; s[1].Score > got.Old || s[2].Score < s[1].Score+10 || s[4].Score < got.Praised-2 {
			t.Errorf("%s: one bad agent among many: %+v", w.Name, s)
		}
	}
}

func TestPrice(t *testing.T) {
	for w, p := range worlds(t) {
		got := NewBench(w, p, 1).Price()
		t.Logf("%s: %+v", w.Name, got)
		if got.Strangers > got.Unpaid || got.To50 < 4 || got.Paying50 < 3 || got.Low50 < got.To50 ||
			got.Formula50 != 5 ||
			got.Formula80 != 20 {
			t.Errorf("%s: %+v", w.Name, got)
		}
	}
}

// The same bytes in any order, on any number of processors and on any machine: a processor
// that disagrees with the constant does not compute the same scores.
func TestDigest(t *testing.T) {
	const golden = "cc65fc9815dc98d9deab2174a79e0af663a5d29b92b8e090948b67a9c8bd4a5f"
	w, p := hundredths(600), params(t)
	for i, pass := range []bool{false, true, true, false} {
		got, err := w.Digest(t.Context(), p, uint64(i), 1+i%2, pass)
		if err != nil || got != golden {
			t.Errorf("order %d, in one pass %v: %s: %v", i, pass, got, err)
		}
	}
}

// hundredths is a world of whole hundredths, made without arithmetic that processors may
// round differently.
func hundredths(parties int) *World {
	rng := rand.New(rand.NewPCG(5, 15))
	w := &World{Name: "hundredths", Now: 1_800_000_000}
	for range parties * 20 {
		w.Ratings = append(w.Ratings, Rating{rng.IntN(parties), rng.IntN(parties), float64(rng.IntN(130)-30) / 100,
			w.Now - rng.Int64N(2e7)})
	}
	for root := range 40 {
		w.Roots = append(w.Roots, root*parties/40)
	}
	return w
}
