package trustbench

import (
	"testing"

	"repute/trust"
	"repute/trust/rating"
)

// What is measured is the same work each time.
func TestCostIsOfTheSameWork(t *testing.T) {
	a, err := measureCost(t.Context(), 10_000, params(t))
	if err != nil {
		t.Fatal(err)
	}
	b, err := measureCost(t.Context(), 10_000, params(t))
	if err != nil || a.Rated == 0 || a.Rated != b.Rated || a.Agents != b.Agents || a.Walk <= 0 || a.Scores <= 0 ||
		a.Event <= 0 || a.Memory <= 0 {
		t.Errorf("%+v and then %+v: %v", a, b, err)
	}
}

// Roots of a caller rate the most rated agent of the crowd, known ones and unknown ones alike.
func TestPersonalIsOfARatedAgent(t *testing.T) {
	p, c := params(t), newCrowd(10_000)
	g := c.graph(params(t))
	_, some := c.ledger(g.Walk(c.roots(), p.Walk), p)
	e := some.busiest
	e.Weights = g.Personal(c.strangeRoots(3), p.Walk)
	if r := trust.Score(e, p); r.Status != trust.Rated {
		t.Errorf("%+v", r)
	}
	if took := measurePersonal(10_000, p); took <= 0 {
		t.Errorf("%g ms", took)
	}
}

func params(t testing.TB) *rating.Params {
	t.Helper()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return p
}
