package attack

import (
	"os"
	"path/filepath"
	"testing"

	"repute/trust"
)

func worlds(t *testing.T) []*World {
	t.Helper()
	out := []*World{Population(1500, 60, 1)}
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	alpha, err := Load(filepath.Join(dir, "trust/soc-sign-bitcoinalpha.csv"), filepath.Join(dir, "trust/alpha_gt.csv"))
	if err != nil {
		t.Log("test data absent: ", err)
		return out
	}
	bent := alpha.Bend(0.3)
	bent.Roots = EarlyRoots(bent.Ratings, 20)
	return append(out, bent)
}

func params(t *testing.T) *trust.Params {
	t.Helper()
	p, err := trust.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAttacks(t *testing.T) {
	for _, w := range worlds(t) {
		p := params(t)
		if w.Name == "alpha" {
			p = Ageless(*p)
		}
		b := NewBench(w, p, 1)
		for _, n := range []int{1, 10, 100, 1000, 10000} {
			check(t, b.FreshSybils(n), 10)
		}
		check(t, b.Camouflage(1000), 10)
		for n, most := range map[int]float64{1: 30, 2: 50} {
			check(t, b.CompromisedRoots(n), most)
			check(t, b.CompromisedRaters(n), most)
		}
		t.Logf("%+v", b.CompromisedRoots(3))
		check(t, b.LowEdges(), 30)
		check(t, b.Bribed(3), 50)
		t.Logf("%+v", b.Bribed(5))
		for _, n := range []int{1, 10, 1000} {
			d := b.SlanderBySybils(n)
			t.Logf("%+v", d)
			if d.Worst > 10 || d.Rejected > 0 || d.Victims == 0 {
				t.Errorf("%s by %d: %+v", d.Attack, n, d)
			}
		}
		for n, most := range map[int]float64{1: 10, 3: 27} {
			d := b.SlanderByRaters(n)
			t.Logf("%+v", d)
			if d.Worst > most || d.Rejected > 0 || d.Victims == 0 {
				t.Errorf("%s by %d: %+v", d.Attack, n, d)
			}
		}
		rated, all := b.Rated()
		t.Logf("%s: %d of %d rated", w.Name, rated, all)
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
	w := worlds(t)
	if len(w) == 1 {
		t.Skip("test data absent")
	}
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	alpha, err := Load(filepath.Join(dir, "trust/soc-sign-bitcoinalpha.csv"), filepath.Join(dir, "trust/alpha_gt.csv"))
	if err != nil {
		t.Fatal(err)
	}
	d := Detect(alpha, Undated(*params(t)))
	t.Logf("%+v", d)
}
