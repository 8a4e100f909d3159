package attack

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"repute/trust"
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
func worlds(t *testing.T) map[*World]*trust.Params {
	t.Helper()
	out := map[*World]*trust.Params{Population(1500, 60, 1): params(t)}
	if w := alpha(t); w != nil {
		w = w.Bend(0.3)
		w.Roots = EarlyRoots(w.Ratings, 20)
		out[w] = Ageless(*params(t))
	}
	return out
}

func params(t *testing.T) *trust.Params {
	t.Helper()
	p, err := trust.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The targets that the engine is built for, on both worlds.
func TestAttacks(t *testing.T) {
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
	t.Logf("%s %s %d: mean %.2f score %.2f paths %d %v", o.World, o.Attack, o.Size, o.Mean, o.Score, o.Paths, o.Baselines)
	if o.Mean > most {
		t.Errorf("%s: %d identities reach %.2f, most is %.0f", o.Attack, o.Size, o.Mean, most)
	}
}

func TestDetection(t *testing.T) {
	w := alpha(t)
	if w == nil {
		t.Skip("test data absent: trust/soc-sign-bitcoinalpha.csv")
	}
	d := Detect(w, Undated(*params(t)))
	t.Logf("%+v", d)
	if d.AUC < 0.90 || d.First3 < 0.82 || d.Low <= 0 {
		t.Errorf("detection is worse than it was: %+v", d)
	}
	if d.Error > 0.27 || d.Pearson < 0.41 {
		t.Errorf("prediction is worse than published: %+v", d)
	}
}
