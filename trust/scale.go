package trust

import (
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Scales says on which scale each rater writes the values of a tag that is written on several: with five stars as 5
// where the tag's own scale ends at 100, or with success as 1. It is inferred from everything that the rater wrote
// with that tag up to a block, see scaleOf. It does not change and is safe for concurrent use. A nil
// one takes all values as the table of tags has them.
type Scales struct {
	tops map[writing]int // where the scale of a writing ends; absent: it cannot be told, or was never asked
	// stated are those of tops that files of feedback state. They hold for all values, also for large ones.
	stated map[writing]bool
}

// FileScale is the end of the scale that the files of a rater's ratings state for a tag, 0 where they state several.
type FileScale struct {
	Rater common.Address `json:"rater"`
	Tag   string         `json:"tag"`
	Top   int            `json:"top"`
}

// fileScales returns what files state by rater and tag, for the tags that are written on several scales.
func (t *TagTable) fileScales(list []FileScale) map[writing]int {
	out := map[writing]int{}
	for _, s := range list {
		if at, known := t.place(s.Rater, s.Tag); known && len(t.rules[at.rule].Scales) > 0 {
			out[writing{s.Rater, int32(at.number)}] = s.Top
		}
	}
	return out
}

// writing is what one rater writes with one tag of the table.
type writing struct {
	rater common.Address
	tag   int32 // its number
}

// habit is what a rater ever wrote with one tag.
type habit struct {
	most     fixed.Fixed
	small    int  // values above 0 that another scale would have too
	fraction bool // one of these is not whole
}

// leastSmall is how many small values show on which scale they are. A single 5 may be a bad mark of 100.
const leastSmall = 5

// hasOtherScale reports whether a value above 0 may be on another scale than the rule's own. Nothing is the least of
// every scale.
func (r *TagRule) hasOtherScale(value fixed.Fixed) bool {
	return len(r.Scales) > 0 && value > 0 && value <= fixed.Int(r.Scales[len(r.Scales)-1])
}

// ownTop is where the rule's own scale ends.
func (r *TagRule) ownTop() int { return int(r.Curve[len(r.Curve)-1].X >> 32) }

// add takes in a value.
func (h *habit) add(r *TagRule, value fixed.Fixed) {
	h.most = max(h.most, value)
	if r.hasOtherScale(value) {
		h.small++
		h.fraction = h.fraction || value&(fixed.One-1) != 0
	}
}

// scaleOf tells where the scale of a rater's values ends. It is the rule's own as soon as one value is beyond all
// others. Otherwise it is the smallest one that holds all values, if there are leastSmall of them and the largest one
// is its end. A scale that ends at 1 takes values between 0 and 1, unless the tag knows no other.
func (r *TagRule) scaleOf(h *habit) (top int, known bool) {
	if !r.hasOtherScale(h.most) {
		return r.ownTop(), true
	}
	i := slices.IndexFunc(r.Scales, func(top int) bool { return h.most <= fixed.Int(top) })
	top = r.Scales[i]
	switch {
	case h.small < leastSmall:
		return 0, false
	case top == 1:
		return top, h.fraction || len(r.Scales) == 1
	}
	return top, h.most == fixed.Int(top)
}

// onOwnScale converts a value that a rater wrote to the rule's own scale. It is not ok where the scale cannot be told.
func (s *Scales) onOwnScale(w writing, r *TagRule, value fixed.Fixed) (own fixed.Fixed, ok bool) {
	if s == nil {
		return value, true
	}
	top, known := s.tops[w]
	if s.stated[w] && value > fixed.Int(top) {
		return 0, false
	}
	if !s.stated[w] && !r.hasOtherScale(value) {
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

// Readings are what a value may mean by the scales of its tag, such as "5 of 5" and "5 of 100"; none where there is
// one alone.
func (t *TagTable) Readings(writer common.Address, tag string, value repute.Amount) (out []string) {
	r := t.RuleOf(writer, tag)
	x, ok := fixedAmount(value)
	if r == nil || !ok || !r.hasOtherScale(x) {
		return nil
	}
	for _, top := range append(slices.Clone(r.Scales), r.ownTop()) {
		if x <= fixed.Int(top) {
			out = append(out, value.Decimal()+" of "+strconv.Itoa(top))
		}
	}
	return out
}

// habits are what raters wrote, by rater and tag.
type habits map[writing]*habit

// add takes in a value of a rater.
func (m habits) add(w writing, r *TagRule, value fixed.Fixed) {
	if len(r.Scales) == 0 || value <= 0 {
		return
	}
	if m[w] == nil {
		m[w] = &habit{}
	}
	m[w].add(r, value)
}

// scales are those of all raters for whom they matter. What files state comes before what the values let infer, unless
// a value lies beyond it: then the rater uses several scales, and values that may be on another one cannot be told.
func (m habits) scales(t *TagTable, files map[writing]int) *Scales {
	out := &Scales{map[writing]int{}, map[writing]bool{}}
	rules := t.byNumber()
	for w, h := range m {
		if top, known := rules[w.tag].scaleOf(h); known && h.small > 0 {
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
