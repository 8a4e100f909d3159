package api

import (
	"context"

	"repute/api/answers"
	"repute/api/batch"
)

// compareInput are the parameters of a comparison.
type compareInput struct {
	answers.Request
	IDs string `query:"ids" required:"true" doc:"two to five ids divided by commas, each in a form that names its chain or with one chain indexed" example:"8453:22,8453:45"`
}

// mountCompare adds the comparison of agents.
func (a *API) mountCompare() {
	get(a, "/compare", "compare-agents",
		"Shows two to five agents side by side, with what sets them apart in sentences", a.compare)
}

// compare serves GET /compare.
func (a *API) compare(ctx context.Context, in *compareInput) (*output[batch.Comparison], error) {
	refs, err := batch.ParseIDs(in.IDs)
	if err != nil {
		return nil, err
	}
	w, err := batch.Compare(ctx, a.Index, refs)
	if err != nil {
		return nil, err
	}
	return ok(w), nil
}
