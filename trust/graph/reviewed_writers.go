package graph

import (
	"slices"

	"repute"
	"repute/trust/fixed"
	"repute/trust/flow"
)

// ReviewedWriters is the id of the source in Credits that gives reviewed writers their weight.
const ReviewedWriters = "reviewed-writers"

// Bounds of reviewed writers and of all credits when no policy of sources is used. They are those of the default
// policy.
var (
	writerBounds = flow.SourceBounds{Praise: fixed.Ratio(27, 10), Blame: fixed.Int(2)}
	allBounds    = flow.SourceBounds{Praise: fixed.Int(7), Blame: fixed.Int(3)}
)

// WithReviewedWriters returns c with a credit for each reviewed writer. A writer has its full weight at every agent,
// and all writers together are bounded like sources of class B. c may be nil.
func (c *Credits) WithReviewedWriters(writers []repute.TrustRoot) *Credits {
	if len(writers) == 0 {
		return c
	}
	out := &Credits{Rules: flow.SourceRules{All: allBounds}, Agents: 1, Days: 1}
	if c != nil {
		*out = *c
		out.Rules.Sources, out.Rules.Classes = slices.Clone(c.Rules.Sources), slices.Clone(c.Rules.Classes)
		out.Raters = slices.Clone(c.Raters)
	}
	class := slices.IndexFunc(out.Rules.Classes,
		func(c flow.SourceClass) bool { return c.ID == repute.ReviewedWriter })
	if class < 0 {
		class = len(out.Rules.Classes)
		out.Rules.Classes = append(out.Rules.Classes, flow.SourceClass{ID: repute.ReviewedWriter,
			Rater: fixed.Ratio(repute.MaxWriterWeight, repute.RootUnit), SourceBounds: writerBounds})
	}
	out.Rules.Sources = append(out.Rules.Sources,
		flow.Source{ID: ReviewedWriters, Class: class, SourceBounds: writerBounds})
	for _, w := range writers {
		weight := fixed.Ratio(int64(min(w.Weight, repute.MaxWriterWeight)), repute.RootUnit)
		out.Raters = append(out.Raters, RaterCredit{Rater: w.Address, Source: len(out.Rules.Sources) - 1,
			Weight:    weight,
			Unlimited: true})
	}
	return out
}
