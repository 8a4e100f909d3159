package trust

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

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

// WritersAt returns the reviewed writers of a set of roots that have not expired at a block's time, ordered by address.
func WritersAt(set []repute.TrustRoot, at time.Time) (list []repute.TrustRoot) {
	for _, r := range set {
		if r.Class == repute.ReviewedWriter && (r.Expires.IsZero() || at.Before(r.Expires)) {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b repute.TrustRoot) int { return a.Address.Cmp(b.Address) })
	return list
}

// ParseRules parses a writer's own rules for tags: a JSON list with the members of the table of tags; none for "".
func ParseRules(writer common.Address, text string) ([]WriterRules, error) {
	if text == "" {
		return nil, nil
	}
	rules := []WriterRules{{Address: writer}}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&rules[0].Tags); err != nil {
		return nil, repute.Invalid("tags", fmt.Sprintf("of writer %s: %s", writer.Hex(), err),
			"a list of rules as in trust/tags.json")
	}
	return rules, nil
}

// WithRoots returns the parameters with the rules of reviewed writers. It leaves out the rules of a writer that the
// table refuses, alone or with those of the writers before it: refused has one repute.ErrInvalid per such writer,
// which then rates by the general rules. The result follows from parameters and writers alone, so that a replay
// leaves out the same.
func (p *Params) WithRoots(writers []repute.TrustRoot) (with *Params, refused []error) {
	var all []WriterRules
	for _, w := range writers {
		rules, err := ParseRules(w.Address, w.Rules)
		if err == nil && len(rules) > 0 {
			err = p.Tags.accepts(append(slices.Clip(all), rules...))
		}
		if err != nil {
			refused = append(refused, fmt.Errorf("rules of writer %s: %w", w.Address.Hex(), err))
			continue
		}
		all = append(all, rules...)
	}
	with, err := p.WithWriters(all)
	if err != nil { // the table itself is wrong
		return p, append(refused, err)
	}
	return with, refused
}

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
		out.Raters = append(out.Raters, RaterCredit{Rater: w.Address, Source: len(out.Rules.Sources) - 1, Weight: weight,
			Unlimited: true})
	}
	return out
}
