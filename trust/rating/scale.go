package rating

import (
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Scales has the scale on which each rater writes the values of a tag, for tags that are written on several scales:
// five stars as 5 where the tag's own scale ends at 100, or success as 1. A scale is stated by the rater's feedback
// files, or inferred from all values that the rater wrote with the tag up to a block: see scaleOf. The Build of
// graph.Reader makes the scales of a run. They do not change and are safe for concurrent use. With nil all values are
// on the tag's own scale.
type Scales struct {
	tops map[Writing]int // end of the scale; absent when it is unknown
	// stated are the keys of tops whose scale feedback files state. Such a scale applies to all values, an inferred one
	// only to values that may be on several scales.
	stated map[Writing]bool
}

// FileScale is the end of the scale that feedback files of a rater state for a tag.
type FileScale struct {
	Rater common.Address `json:"rater"`
	Tag   string         `json:"tag"`
	Top   int            `json:"top"` // 0 when the files state different scales
}

// FileScales returns the stated ends by rater and tag, for tags that are written on several scales.
func (t *TagTable) FileScales(list []FileScale) map[Writing]int {
	out := map[Writing]int{}
	for _, s := range list {
		if at, known := t.place(s.Rater, s.Tag); known && len(t.rules[at.rule].Scales) > 0 {
			out[Writing{s.Rater, int32(at.number)}] = s.Top
		}
	}
	return out
}

// Writing identifies the values of one rater with one tag of the table.
type Writing struct {
	Rater common.Address
	Tag   int32 // number of the tag in the table
}

// Habit summarizes all values of a Writing.
type Habit struct {
	most     fixed.Fixed // the largest value
	small    int         // how many values may be on another scale: see hasOtherScale
	fraction bool        // one of these values is not whole
}

// LeastSmall is how many small values are needed to infer a scale. A single 5 may be a bad mark of 100.
const LeastSmall = 5

// HasOtherScale reports whether a value may be on another scale than the rule's own. 0 is 0 on every scale.
func (r *TagRule) HasOtherScale(value fixed.Fixed) bool {
	return len(r.Scales) > 0 && value > 0 && value <= fixed.Int(r.Scales[len(r.Scales)-1])
}

// ownTop returns the end of the rule's own scale.
func (r *TagRule) ownTop() int { return int(r.Curve[len(r.Curve)-1].X >> 32) }

// Add adds a value to the summary.
func (h *Habit) Add(r *TagRule, value fixed.Fixed) {
	h.most = max(h.most, value)
	if r.HasOtherScale(value) {
		h.small++
		h.fraction = h.fraction || value&(fixed.One-1) != 0
	}
}

// scaleOf infers the end of the scale of a rater's values. It is the rule's own when one value is above the ends of all
// other scales. Otherwise it is the smallest scale that contains all values, provided that there are at least
// LeastSmall values and the largest one is the end of the scale. A scale that ends at 1 also needs a value between 0
// and 1, unless it is the tag's only other scale. known is false when the scale cannot be inferred.
func (r *TagRule) scaleOf(h *Habit) (top int, known bool) {
	if !r.HasOtherScale(h.most) {
		return r.ownTop(), true
	}
	i := slices.IndexFunc(r.Scales, func(top int) bool { return h.most <= fixed.Int(top) })
	top = r.Scales[i]
	switch {
	case h.small < LeastSmall:
		return 0, false
	case top == 1:
		return top, h.fraction || len(r.Scales) == 1
	}
	return top, h.most == fixed.Int(top)
}

// onOwnScale converts a value of a rater to the rule's own scale. ok is false when the scale is unknown, and when the
// value is above the end that files state. Such a value does not count.
func (s *Scales) onOwnScale(w Writing, r *TagRule, value fixed.Fixed) (own fixed.Fixed, ok bool) {
	if s == nil {
		return value, true
	}
	top, known := s.tops[w]
	if s.stated[w] && value > fixed.Int(top) {
		return 0, false
	}
	if !s.stated[w] && !r.HasOtherScale(value) {
		return value, true
	}
	if !known {
		return 0, false
	}
	return value.Scaled(int64(r.ownTop()), int64(top)), true
}

// Size returns about how many bytes of memory the scales take.
func (s *Scales) Size() int64 {
	if s == nil {
		return 0
	}
	return int64(len(s.tops)+len(s.stated)) * 64
}

// Readings returns the possible meanings of a value by the scales of its tag, such as "5 of 5" and "5 of 100"; nil when
// it has only one.
func (t *TagTable) Readings(writer common.Address, tag string, value repute.Amount) (out []string) {
	r := t.RuleOf(writer, tag)
	x, ok := fixedAmount(value)
	if r == nil || !ok || !r.HasOtherScale(x) {
		return nil
	}
	for _, top := range append(slices.Clone(r.Scales), r.ownTop()) {
		if x <= fixed.Int(top) {
			out = append(out, value.Decimal()+" of "+strconv.Itoa(top))
		}
	}
	return out
}

// Habits are the summaries of all values of raters.
type Habits map[Writing]*Habit

// Add adds a value of a rater. Values of tags with one scale, and values of 0 or less, are ignored.
func (m Habits) Add(w Writing, r *TagRule, value fixed.Fixed) {
	if len(r.Scales) == 0 || value <= 0 {
		return
	}
	if m[w] == nil {
		m[w] = &Habit{}
	}
	m[w].Add(r, value)
}

// Scales returns the scales of all raters with values that may be on several scales. A scale that files state replaces
// an inferred one. When a value is above the stated end, the rater uses several scales, and its scale is unknown.
func (m Habits) Scales(t *TagTable, files map[Writing]int) *Scales {
	out := &Scales{map[Writing]int{}, map[Writing]bool{}}
	rules := t.byNumber()
	for w, h := range m {
		if top, known := rules[w.Tag].scaleOf(h); known && h.small > 0 {
			out.tops[w] = top
		}
	}
	for w, top := range files {
		if h := m[w]; top == 0 || h != nil && h.most > fixed.Int(top) {
			delete(out.tops, w)
			continue
		}
		out.tops[w], out.stated[w] = top, true
	}
	return out
}

// byNumber returns the rule of each tag by the tag's number.
func (t *TagTable) byNumber() []*TagRule {
	rules := make([]*TagRule, len(t.byTag)+len(t.byWriter))
	for _, at := range t.byTag {
		rules[at.number] = t.rules[at.rule]
	}
	for _, at := range t.byWriter {
		rules[at.number] = t.rules[at.rule]
	}
	return rules
}
