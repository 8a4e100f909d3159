package rating

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// MaxRules is the highest number of general rules, of writers' rules, of channels and of finalities, for each of these
// lists. A record stores the index of its rule among all rules in one byte.
const MaxRules = 80

// check validates a table of tags and fills its lookups. It is called for each new table, also after writers' rules
// were added.
func (t *TagTable) check() error {
	t.rules, t.use = nil, map[string]Use{}
	t.byTag, t.byWriter = map[string]tagPlace{}, map[writerTag]tagPlace{}
	if len(t.Tags) > MaxRules || len(t.Channels) > MaxRules || len(t.Validation.Finality) > MaxRules {
		return repute.Invalid("tags", fmt.Sprintf("more than %d rules, channels or finalities", MaxRules), "merge some")
	}
	for i, c := range t.Channels {
		if c.Name == "" || !slices.Contains([]Use{UseScore, UseGate, UseShown}, c.Use) {
			return repute.Invalid(fmt.Sprintf("tags: channels[%d]", i), "no name, or an unknown use",
				"use is score, gate or shown")
		}
		t.use[c.Name] = c.Use
	}
	for i := range t.Tags {
		if err := t.addRule(fmt.Sprintf("tags: tags[%d]", i), common.Address{}, &t.Tags[i]); err != nil {
			return err
		}
	}
	if err := t.addWriters(); err != nil {
		return err
	}
	v := t.Validation
	return t.checkCurve("tags: validation", v.Channel, v.Weight, v.Curve)
}

// accepts returns the error of the table with rules of writers in addition to its own, and leaves the table as it is.
func (t TagTable) accepts(writers []WriterRules) error {
	t.Writers = append(slices.Clone(t.Writers), writers...)
	return t.check()
}

// addWriters validates the rules of all writers and adds them to the lookups.
func (t *TagTable) addWriters() error {
	for i, w := range t.Writers {
		field := fmt.Sprintf("tags: writers[%d]", i)
		if w.Address == (common.Address{}) {
			return repute.Invalid(field+".address", "is missing or zero", "0x and 40 hex digits")
		}
		for j := range w.Tags {
			if err := t.addRule(fmt.Sprintf("%s.tags[%d]", field, j), w.Address, &w.Tags[j]); err != nil {
				return err
			}
		}
	}
	if own := len(t.rules) - len(t.Tags); own > MaxRules {
		return repute.Invalid("tags: writers", fmt.Sprintf("%d rules", own), fmt.Sprintf("at most %d", MaxRules))
	}
	return nil
}

// addRule validates a rule and adds its tags to the lookups. A zero writer means that the rule is a general one.
func (t *TagTable) addRule(field string, writer common.Address, r *TagRule) error {
	if err := t.checkCurve(field, r.Channel, r.Weight, r.Curve); err != nil {
		return err
	}
	if err := r.check(field); err != nil {
		return err
	}
	if len(r.Tags) == 0 {
		return repute.Invalid(field+".tags", "is empty", "one tag or more")
	}
	t.rules = append(t.rules, r)
	for _, tag := range r.Tags {
		at := tagPlace{len(t.rules) - 1, len(t.byTag) + len(t.byWriter)}
		_, general := t.byTag[tag]
		_, own := t.byWriter[writerTag{writer, tag}]
		switch isOwn := writer != (common.Address{}); {
		case isOwn && own, !isOwn && general:
			return repute.Invalid(field, fmt.Sprintf("tag %q has two rules", tag), "keep one")
		case isOwn:
			t.byWriter[writerTag{writer, tag}] = at
		default:
			t.byTag[tag] = at
		}
	}
	return nil
}

// check requires unit, reason and direction of a rule, and refuses a range, direction or scales that do not fit its
// curve.
func (r *TagRule) check(field string) error {
	switch {
	case r.Unit == "":
		return repute.Invalid(field+".unit", "is missing", "what a value means, such as percent")
	case r.Reason == "":
		return repute.Invalid(field+".reason", "is missing", "why the tag is in this channel with this weight")
	case !slices.Contains([]Better{HigherBetter, LowerBetter, NeitherBetter}, r.Better):
		return repute.Invalid(field+".better", fmt.Sprintf("%q is no direction", r.Better), "higher, lower or neither")
	}
	if err := r.checkRange(field); err != nil {
		return err
	}
	if err := r.checkDirection(field); err != nil {
		return err
	}
	return r.checkScales(field)
}

// checkRange refuses a range that is empty or differs from the ends of the curve.
func (r *TagRule) checkRange(field string) error {
	field += ".range"
	switch n := len(r.Curve); {
	case len(r.Range) == 0 && n == 0:
		return nil
	case len(r.Range) != 2:
		return repute.Invalid(field, fmt.Sprintf("has %d values", len(r.Range)), "the least and the largest value")
	case r.Range[0] >= r.Range[1]:
		return repute.Invalid(field, "is empty", "the least value, then a larger one")
	case n > 0 && (r.Range[0] != r.Curve[0].X || r.Range[1] != r.Curve[n-1].X):
		return repute.Invalid(field, "differs from the ends of the curve", "the first and the last value of the curve")
	}
	return nil
}

// checkDirection refuses a curve on which a better value gives a worse opinion.
func (r *TagRule) checkDirection(field string) error {
	if len(r.Curve) > 0 && r.Better == NeitherBetter {
		return repute.Invalid(field+".better", "is neither, and there is a curve", "higher or lower")
	}
	for i := 1; i < len(r.Curve); i++ {
		rises := r.Curve[i].Y - r.Curve[i-1].Y
		if r.Better == HigherBetter && rises < 0 || r.Better == LowerBetter && rises > 0 {
			return repute.Invalid(fmt.Sprintf("%s.curve[%d]", field, i), "goes against better: "+string(r.Better),
				"opinions that rise with better values")
		}
	}
	return nil
}

// checkScales refuses scales that do not end between 0 and the end of a curve that begins at 0.
func (r *TagRule) checkScales(field string) error {
	for i, top := range r.Scales {
		if r.Weight == 0 || r.Curve[0].X != 0 || top <= 0 || top >= r.ownTop() || i > 0 && top <= r.Scales[i-1] {
			return repute.Invalid(fmt.Sprintf("%s.scales[%d]", field, i), "out of order or range",
				"whole numbers, ascending, above 0 and below the last value of a curve that begins at 0")
		}
	}
	return nil
}

// checkCurve refuses an unknown channel, a weight out of range or a curve that does not ascend.
func (t *TagTable) checkCurve(field, channel string, weight fixed.Fixed, curve []Corner) error {
	if t.use[channel] == "" {
		return repute.Invalid(field+".channel", fmt.Sprintf("unknown channel %q", channel), "name one of channels")
	}
	if weight < 0 || weight > fixed.Int(10) || weight > 0 && len(curve) < 2 {
		return repute.Invalid(field, "a weight needs a curve of two corners or more", "weight is 0 to 10")
	}
	for i, c := range curve {
		if c.Y < -fixed.One || c.Y > fixed.One || i > 0 && c.X <= curve[i-1].X {
			return repute.Invalid(fmt.Sprintf("%s.curve[%d]", field, i), "out of order or range",
				"values ascend, opinions are -1 to 1")
		}
	}
	return nil
}
