package rating

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
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
			"a list of rules as in trust/rating/tags.json")
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
