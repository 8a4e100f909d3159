package attack

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// written writes a file of a test and returns its path.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLoad: ratings of -10 to 10 become opinions, a header is passed over, and what cannot be read is named.
func TestLoad(t *testing.T) {
	t.Parallel()
	labels := written(t, "labels", "node,label\n1,1\n2,-1\n\n")
	w, err := Load(written(t, "ratings", "source,target,rating,time\n1,2,10,100\n2,1,-5,200.5\ntoo,few\n"), labels)
	if err != nil || !slices.Equal(w.Ratings, []Rating{{1, 2, 1, 100}, {2, 1, -0.5, 200}}) || w.Now != 200 ||
		!w.Good[1] || !w.Bad[2] || len(w.Good)+len(w.Bad) != 2 || w.Next() != 3 {
		t.Errorf("%+v, %v", w, err)
	}
	bare := written(t, "ratings", "7,8,1,1\n")
	if w, err := Load(bare, labels); err != nil || len(w.Ratings) != 1 || w.Ratings[0].Value != 0.1 {
		t.Errorf("without a header: %+v, %v", w, err)
	}
	missing := filepath.Join(t.TempDir(), "none")
	for name, files := range map[string][2]string{"ratings": {missing, labels}, "labels": {bare, missing}} {
		if _, err := Load(files[0], files[1]); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no %s: %v", name, err)
		}
	}
	for _, bad := range []string{"1,2,x,3", "1.5,2,1,3", "1,,1,3", "1,2,1,now"} {
		if _, err := Load(written(t, "ratings", "1,2,1,1\n"+bad+"\n"), labels); err == nil ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// drawWorld draws a world of a few parties.
func drawWorld(t *rapid.T) *World {
	w := &World{Good: map[int]bool{}, Bad: map[int]bool{}}
	for range rapid.IntRange(1, 60).Draw(t, "ratings") {
		w.Ratings = append(w.Ratings, Rating{rapid.IntRange(0, 9).Draw(t, "from"), rapid.IntRange(0, 9).Draw(t, "to"),
			rapid.Float64Range(-1, 1).Draw(t, "value"), rapid.Int64Range(0, 1000).Draw(t, "time")})
	}
	w.Roots = EarlyRoots(w.Ratings, 3)
	return w
}

// TestWorldsDoNotChange: attacks and other scales are copies, and new parties are unlike those that are there.
func TestWorldsDoNotChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		before := slices.Clone(w.Ratings)
		more, bent := w.With(Rating{From: w.Next(), To: 0, Value: 1}), w.Bend(0.3)
		more.Ratings[0].Value, bent.Ratings[0].Time = 7, 7
		if !slices.Equal(w.Ratings, before) || len(more.Ratings) != len(before)+1 {
			t.Fatal("the world has changed")
		}
		for i, r := range before {
			if (bent.Ratings[i].Value < 0) != (r.Value < 0) || math.Abs(bent.Ratings[i].Value) > 1 ||
				r.From >= w.Next() || r.To >= w.Next() {
				t.Fatalf("rating %+v becomes %+v", r, bent.Ratings[i])
			}
		}
		if a, b := Address(w.Next()), Address(w.Next()+1); a == b || a == (common.Address{}) ||
			Address(0) == (common.Address{}) {
			t.Fatalf("addresses %s and %s", a, b)
		}
	})
}

// TestEarlyRoots: only praise of the first tenth counts, by distinct parties, and the order of ratings with different
// times changes nothing.
func TestEarlyRoots(t *testing.T) {
	t.Parallel()
	var ratings []Rating
	for i := range 100 {
		ratings = append(ratings, Rating{From: i, To: 50, Value: 1, Time: 1000 + int64(i)})
	}
	early := []Rating{{1, 7, 1, 1}, {2, 7, 0.1, 2}, {3, 8, 1, 3}, {3, 8, 1, 4}, {3, 8, 1, 5}, {4, 9, -1, 6}, {5, 9, -1, 7},
		{6, 9, -1, 8}, {1, 6, 1, 9}, {7, 6, 0, 10}}
	ratings = append(ratings, early...)
	want := []int{7, 6, 8, 50} // 8 has one rater, 9 blame, 50 one early rating; equals are in order of their numbers
	for range 2 {
		if got := EarlyRoots(ratings, 10); !slices.Equal(got, want) {
			t.Errorf("roots %v, want %v", got, want)
		}
		slices.Reverse(ratings)
	}
	if got := EarlyRoots(ratings, 1); !slices.Equal(got, want[:1]) {
		t.Errorf("one root: %v", got)
	}
	if got := EarlyRoots(nil, 3); len(got) != 0 {
		t.Errorf("of no ratings: %v", got)
	}
}

// TestFormulasOfOthers: a formula on a scale of 100 stays on it, and praise by one client more does not lower one that
// counts clients.
func TestFormulasOfOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1, 1), 0, 200).Draw(t, "opinions")
		for _, b := range baselines() {
			got := b.score(values)
			if math.IsNaN(got) || got > 100.000001 || got < -100.000001 {
				t.Fatalf("%s of %v is %v", b.name, values, got)
			}
			if b.name != "plain mean" && b.name != "Bayesian mean" && got < 0 {
				t.Fatalf("%s of %v is %v, on a scale from 0", b.name, values, got)
			}
			if with := b.score(append(slices.Clone(values), 1)); len(values) > 0 && with < got-1e-9 {
				t.Fatalf("%s of %v falls from %v to %v by praise", b.name, values, got, with)
			}
		}
		w := drawWorld(t)
		if len(w.Roots) == 0 {
			return
		}
		for party := range w.Next() {
			if p := w.eigenTrust(party); p < 0 || p > 100 || math.IsNaN(p) {
				t.Fatalf("percentile %v", p)
			}
		}
	})
}

// TestMeasuresOfDetection: the AUC is turned around with the scores, and a perfect prediction has no error.
func TestMeasuresOfDetection(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "parties")
		scores, bad := make([]float64, n), make([]bool, n)
		for i := range n {
			scores[i], bad[i] = float64(rapid.IntRange(-5, 5).Draw(t, "score")), rapid.Bool().Draw(t, "bad")
		}
		bad[0], bad[1] = true, false
		a, b := auc(scores, bad), auc(negatedOf(scores), bad)
		if a < 0 || a > 1 || math.Abs(a+b-1) > 1e-9 || auc(make([]float64, n), bad) != 0.5 {
			t.Fatalf("%v and %v of %v, %v", a, b, scores, bad)
		}
		perfect := make([]float64, n)
		for i := range perfect {
			if !bad[i] {
				perfect[i] = 1
			}
		}
		if got := auc(perfect, bad); got != 1 {
			t.Fatalf("good above bad: %v", got)
		}
		scores[0], scores[1] = 0, 3 // not all the same
		if rmse, pearson := compare(scores, scores); rmse != 0 || math.Abs(pearson-1) > 1e-9 {
			t.Fatalf("error %v, correlation %v", rmse, pearson)
		}
		if _, pearson := compare(negatedOf(scores), scores); math.Abs(pearson+1) > 1e-9 {
			t.Fatalf("correlation of the opposite: %v", pearson)
		}
	})
}

// negatedOf returns the opposite of each value.
func negatedOf(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = -v
	}
	return out
}
