package trust

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"repute"
	"repute/trust/fixed"
)

// TagTable says what the values of each tag mean. A tag that is not in it weighs
// nothing; a value outside its curve is left out, never bent into it.
type TagTable struct {
	Version    string     `json:"version"`
	Channels   []Channel  `json:"channels"`
	Tags       []TagRule  `json:"tags"`
	Validation Validation `json:"validation"`

	byTag map[string]tagPlace
	use   map[string]Use
}

// Use is what a channel's evidence is for.
type Use string

// Uses of channels.
const (
	UseScore Use = "score" // part of the score
	UseGate  Use = "gate"  // not part of it, policies may ask for it
	UseShown Use = "shown" // neither: not comparable, or easy to make up
)

// Channel is one kind of evidence.
type Channel struct {
	Name string `json:"name"`
	Use  Use    `json:"use"`
}

// TagRule maps the values of tags to opinions from -1 to 1.
type TagRule struct {
	Tags    []string    `json:"tags"`
	Channel string      `json:"channel"`
	Unit    string      `json:"unit"`   // what a value means
	Weight  fixed.Fixed `json:"weight"` // 0: shown only
	Curve   []Corner    `json:"curve"`  // straight lines between corners; values outside are no opinions
	// Scales are where other scales end on which raters write the tag, ascending; the rule's own ends with its curve.
	Scales []int `json:"scales,omitempty"`
}

// Validation is the rule for answers of allow-listed validation contracts.
type Validation struct {
	Channel  string                 `json:"channel"`
	Unit     string                 `json:"unit"`
	Weight   fixed.Fixed            `json:"weight"`
	Curve    []Corner               `json:"curve"`
	Finality map[string]fixed.Fixed `json:"finality"` // factor by the answer's tag, "" for any other
}

// Corner is a point of a curve: value X means opinion Y.
type Corner struct{ X, Y fixed.Fixed }

// UnmarshalJSON reads [x, y].
func (c *Corner) UnmarshalJSON(b []byte) error {
	var xy []fixed.Fixed
	if err := json.Unmarshal(b, &xy); err != nil {
		return err
	}
	if len(xy) != 2 {
		return fmt.Errorf("a corner of a curve is [value, opinion], not %s", b)
	}
	c.X, c.Y = xy[0], xy[1]
	return nil
}

// Rule is the table's rule for a tag, nil when it has none.
func (t *TagTable) Rule(tag string) *TagRule {
	if at, known := t.byTag[tag]; known {
		return &t.Tags[at.rule]
	}
	return nil
}

// tagPlace is the index of a tag's rule, and the tag's own number among all tags.
type tagPlace struct{ rule, number int }

// maxRules bounds rules, channels and finalities, which records number in a byte.
const maxRules = 100

// check refuses a table of tags that cannot be meant, and prepares its lookups.
func (t *TagTable) check() error {
	t.byTag, t.use = map[string]tagPlace{}, map[string]Use{}
	if len(t.Tags) > maxRules || len(t.Channels) > maxRules || len(t.Validation.Finality) > maxRules {
		return repute.Invalid("tags", "more than a hundred rules, channels or finalities", "merge some")
	}
	for i, c := range t.Channels {
		if c.Name == "" || !slices.Contains([]Use{UseScore, UseGate, UseShown}, c.Use) {
			return repute.Invalid(fmt.Sprintf("tags: channels[%d]", i), "no name, or an unknown use",
				"use is score, gate or shown")
		}
		t.use[c.Name] = c.Use
	}
	for i := range t.Tags {
		field := fmt.Sprintf("tags: tags[%d]", i)
		rule := &t.Tags[i]
		if err := t.checkRule(field, rule.Channel, rule.Weight, rule.Curve); err != nil {
			return err
		}
		if err := rule.checkScales(field); err != nil {
			return err
		}
		for _, tag := range rule.Tags {
			if _, known := t.byTag[tag]; known {
				return repute.Invalid(field, fmt.Sprintf("tag %q has two rules", tag), "keep one")
			}
			t.byTag[tag] = tagPlace{i, len(t.byTag)}
		}
	}
	v := t.Validation
	return t.checkRule("tags: validation", v.Channel, v.Weight, v.Curve)
}

// checkScales refuses other scales than such as end between 0 and the end of a curve that begins at 0.
func (r *TagRule) checkScales(field string) error {
	for i, top := range r.Scales {
		if r.Weight == 0 || r.Curve[0].X != 0 || top <= 0 || top >= r.ownTop() || i > 0 && top <= r.Scales[i-1] {
			return repute.Invalid(fmt.Sprintf("%s.scales[%d]", field, i), "out of order or range",
				"whole numbers, ascending, above 0 and below the last value of a curve that begins at 0")
		}
	}
	return nil
}

// checkRule refuses an unknown channel, a weight out of range or a curve that does not ascend.
func (t *TagTable) checkRule(field, channel string, weight fixed.Fixed, curve []Corner) error {
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

// opinionOf reads a value on a curve; it is not ok outside.
func opinionOf(curve []Corner, x fixed.Fixed) (v fixed.Fixed, ok bool) {
	if len(curve) == 0 || x < curve[0].X || x > curve[len(curve)-1].X {
		return 0, false
	}
	for i := 1; i < len(curve); i++ {
		low, high := curve[i-1], curve[i]
		if x <= high.X {
			return low.Y + (x-low.X).Scaled(int64(high.Y-low.Y), int64(high.X-low.X)), true
		}
	}
	return curve[0].Y, true
}

// fixedAmount is the amount rounded toward zero, not ok where it does not fit. What is rounded
// away must not bring a value back into range: it goes outward by a unit.
func fixedAmount(a repute.Amount) (fixed.Fixed, bool) {
	if a.Value == nil {
		return 0, false
	}
	if v, ok := wordAmount(a); ok {
		return v, true
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)), nil)
	n, rest := new(big.Int).QuoRem(new(big.Int).Lsh(a.Value, 32), scale, new(big.Int))
	if rest.Sign() != 0 {
		n.Add(n, big.NewInt(int64(rest.Sign())))
	}
	if !n.IsInt64() {
		return 0, false
	}
	return fixed.Fixed(n.Int64()), true
}

// wordAmount is fixedAmount for amounts of which everything fits a word, as most do.
func wordAmount(a repute.Amount) (fixed.Fixed, bool) {
	const most = 1 << 30 // times 2^32 still fits
	if !a.Value.IsInt64() || a.Decimals > 18 {
		return 0, false
	}
	scale := uint64(1)
	for range a.Decimals {
		scale *= 10
	}
	v := a.Value.Int64()
	m := fixed.Magnitude(v)
	if m/scale >= most {
		return 0, false
	}
	hi, lo := bits.Mul64(m, 1<<32)
	q, rest := bits.Div64(hi, lo, scale)
	if rest != 0 {
		q++
	}
	if v < 0 {
		return -fixed.Fixed(q), true
	}
	return fixed.Fixed(q), true
}
