package rating

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// TagTable has the rules by which the values of tags are read. A rating whose tag has no rule does not count. A value
// outside the curve of its rule does not count either; it is never moved into the curve's range.
type TagTable struct {
	Version    string     `json:"version"`
	Channels   []Channel  `json:"channels"`
	Tags       []TagRule  `json:"tags"`
	Validation Validation `json:"validation"`
	// Writers have rules of their own for some tags, which replace those of Tags for their ratings.
	Writers []WriterRules `json:"writers,omitempty"`

	rules    []*TagRule // those of Tags, then those of Writers
	byTag    map[string]tagPlace
	byWriter map[writerTag]tagPlace
	use      map[string]Use
}

// Use is what a channel's evidence is for.
type Use string

// Uses of channels.
const (
	UseScore Use = "score" // part of the score
	UseGate  Use = "gate"  // not part of the score; policies may ask for it
	UseShown Use = "shown" // neither: not comparable, or easy to forge
)

// Channel is one kind of evidence.
type Channel struct {
	Name string `json:"name"`
	Use  Use    `json:"use"`
}

// TagRule maps the values of tags to opinions from -1 to 1.
type TagRule struct {
	Tags    []string `json:"tags"`
	Channel string   `json:"channel"`
	Unit    string   `json:"unit"`   // what a value means
	Better  Better   `json:"better"` // which values are better
	// Range holds the least and the largest value, nil where there are no such bounds. A rule with a curve has the ends
	// of its curve.
	Range  []fixed.Fixed `json:"range,omitempty"`
	Weight fixed.Fixed   `json:"weight"`          // 0: shown only
	Curve  []Corner      `json:"curve,omitempty"` // straight lines between corners; values outside are no opinions
	// Scales are where other scales end on which raters write the tag, ascending; the rule's own ends with its curve.
	Scales []int `json:"scales,omitempty"`
	// Reason says why the tag is in this channel with this weight.
	Reason string `json:"reason"`
}

// Better says which values of a tag are better.
type Better string

// Directions of tags.
const (
	HigherBetter  Better = "higher"
	LowerBetter   Better = "lower"
	NeitherBetter Better = "neither" // a count or a label
)

// WriterRules are the rules of one address. An address that is no contract has the same owner on every chain.
type WriterRules struct {
	Address common.Address `json:"address"`
	Tags    []TagRule      `json:"tags"`
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

// MarshalJSON writes [x, y].
func (c Corner) MarshalJSON() ([]byte, error) { return json.Marshal([]fixed.Fixed{c.X, c.Y}) }

// tagPlace is the index of a tag's rule in TagTable.rules, and a number of its own among all tags of all rules.
type tagPlace struct{ rule, number int }

// writerTag identifies a writer's own rule of a tag.
type writerTag struct {
	writer common.Address
	tag    string
}

// place returns where the rule of a tag is for ratings of a writer: its own rule, or else the general one.
func (t *TagTable) place(writer common.Address, tag string) (at tagPlace, known bool) {
	if len(t.byWriter) > 0 {
		if at, known = t.byWriter[writerTag{writer, tag}]; known {
			return at, true
		}
	}
	at, known = t.byTag[tag]
	return at, known
}

// Rule returns the general rule of a tag, nil when there is none.
func (t *TagTable) Rule(tag string) *TagRule { return t.RuleOf(common.Address{}, tag) }

// RuleOf returns the rule of a tag for ratings of a writer, nil when there is none.
func (t *TagTable) RuleOf(writer common.Address, tag string) *TagRule {
	if at, known := t.place(writer, tag); known {
		return t.rules[at.rule]
	}
	return nil
}

// UseOf returns what the evidence of a rule is for.
func (t *TagTable) UseOf(r *TagRule) Use { return t.use[r.Channel] }

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
