package trustbench

import (
	"testing"
)

// The real reader asks in batches: ten times the raters take more calls, and 10,000 no more than the target.
func TestSourceCalls(t *testing.T) {
	t.Parallel()
	p, err := sourcePolicy()
	if err != nil {
		t.Fatal(err)
	}
	few, err := sourceCalls(t.Context(), p, 1000)
	if err != nil {
		t.Fatal(err)
	}
	many, err := sourceCalls(t.Context(), p, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v and %+v", few, many)
	steps := int64(len(p.Source(many.Source).Read.Calls))
	if few.Calls < steps || many.Calls <= few.Calls || many.Calls > mostSourceCalls {
		t.Errorf("%+v and %+v with %d calls for each rater", few, many, steps)
	}
}
