package manifest

import (
	"regexp"
	"strings"

	"repute"
	"repute/internal/jsonwalk"
)

// scaleText is how files write a scale as text: its end, or both ends.
var scaleText = regexp.MustCompile(`^(?:(?:out of|/)\s*|([0-9.]+)\s*(?:-|–|to|\.\.|/)\s*)?([0-9.]+)$`)

// scale reads which scale the value is on. Files name its ends, or have them together in a member scale: a number, a
// text such as "1-5", or an object. It is nil when the file does not say, or says different things.
func (o *object) scale() *repute.FeedbackScale {
	found := []repute.FeedbackScale{
		{Min: o.number("minValue", "min_value"), Max: o.number("maxValue", "max_value")},
		{Min: o.number("worstRating"), Max: o.number("bestRating", "maxRating", "max_rating")},
		o.scaleMember(),
	}
	var s repute.FeedbackScale
	for _, one := range found {
		if !agree(&s.Min, one.Min) || !agree(&s.Max, one.Max) {
			o.r.add(CodeScaleForm, o.at("scale"), "the file says different things of its scale")
			return nil
		}
	}
	if s.Max == "" {
		return nil
	}
	least, ok := decimalOf(s.Min)
	most, okMost := decimalOf(s.Max)
	if s.Min != "" && !ok || !okMost || most.Sign() <= 0 || s.Min != "" && least.Cmp(most) >= 0 {
		o.r.add(CodeScaleForm, o.at("scale"), "%.40q to %.40q is no scale", s.Min, s.Max)
		return nil
	}
	return &s
}

// agree adds what one member says to what others said, and reports whether they say the same.
func agree(known *string, said string) bool {
	switch {
	case said == "":
		return true
	case *known == "":
		*known = said
		return true
	}
	a, okA := decimalOf(*known)
	b, okB := decimalOf(said)
	return okA && okB && a.Cmp(b) == 0
}

// scaleMember reads the member scale in any of its forms. Other forms stay unread.
func (o *object) scaleMember() (s repute.FeedbackScale) {
	m := o.find("scale")
	if m == nil {
		return s
	}
	switch jsonwalk.Type(m.raw) {
	case "a number":
		s.Max = o.number("scale")
	case "a string":
		text := o.number("scale")
		parts := scaleText.FindStringSubmatch(strings.TrimSpace(strings.ToLower(text)))
		if parts == nil {
			o.r.add(CodeScaleForm, o.at("scale"), "%.80q is no scale", text)
			return s
		}
		s.Min, s.Max = parts[1], parts[2]
	case "an object":
		nested := o.child("scale")
		s.Min, s.Max = nested.number("min", "minimum", "worst"), nested.number("max", "maximum", "best")
		o.keepUnread("scale", nested)
	}
	return s
}
