package rating

import (
	"math"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
)

// Record is one row by the rules of the tag table, small enough to keep millions.
type Record struct {
	Node    flow.Node // NoNode for a rater the graph does not know
	Value   int32     // -1 to 1 in units of 2^-30
	Time    uint32    // Unix seconds
	Payment uint16    // factor in units of 2^-12
	Rule    uint8     // index in the rules of Params; for Params.TagRule and ChannelOf
	Opens   uint8     // set by the caller: the groups that begin with the record
}

// Opinion returns the opinion as a Fixed.
func (e *Record) Opinion() fixed.Fixed { return fixed.Fixed(e.Value) << 2 }

// paymentFactor returns what a payment multiplies the weight of the rating by.
func (e *Record) paymentFactor() fixed.Fixed { return fixed.Fixed(e.Payment) << 20 }

// Read turns a row into a record as of a time, or returns why it does not count. The caller
// sets Node and Opens.
func (p *Params) Read(row *Row, at int64, scales *Scales) (e Record, reason Reason) {
	e, w, value, reason := p.Begin(row, at)
	if reason == "" {
		reason = p.Judge(&e, w, value, scales)
	}
	return e, reason
}

// Begin is Read without the opinion, which Judge makes of the value.
func (p *Params) Begin(row *Row, at int64) (e Record, w Writing, value fixed.Fixed, reason Reason) {
	if row.Time <= 0 || row.Time > math.MaxUint32 {
		return e, w, 0, ReasonUndated
	}
	if row.Time > at {
		return e, w, 0, ReasonFuture
	}
	if row.Via != (common.Address{}) && row.Via == row.Rater {
		return e, w, 0, ReasonGateway // the vote of one address would stand for all who paid
	}
	said := row.Said
	if said == nil {
		now := p.said(row)
		said = &now
	}
	if said.reason != "" {
		return e, w, 0, said.reason
	}
	w.Rater, w.Tag, e.Rule = row.Rater, said.tag, said.rule
	e.Time, e.Payment = uint32(row.Time), uint16(p.payment(row.Paid)>>20)
	return e, w, said.value, ""
}

// Said is what the tags and the amount of a row mean by a table of tags.
type Said struct {
	rule   uint8
	tag    int32 // number in the table
	value  fixed.Fixed
	reason Reason // why the row does not count, "" when it may count
}

// Said returns what the tags and the amount of a row mean, nil when that depends on who wrote it.
func (p *Params) Said(row *Row) *Said {
	if len(p.Tags.byWriter) > 0 {
		return nil
	}
	said := p.said(row)
	return &said
}

// said returns Said for one row.
func (p *Params) said(row *Row) (s Said) {
	if s.rule, s.tag, s.reason = p.rule(row); s.reason != "" {
		return s
	}
	var ok bool
	if s.value, ok = fixedAmount(row.Amount); !ok {
		s.reason = ReasonRange
	}
	return s
}

// HasOtherScale reports whether a value with this meaning may be on another scale than the tag's own.
func (p *Params) HasOtherScale(s *Said) bool {
	return s.reason == "" && int(s.rule) < len(p.Tags.rules) && p.Tags.rules[s.rule].HasOtherScale(s.value)
}

// Judge sets a record's opinion by what was written.
func (p *Params) Judge(e *Record, w Writing, value fixed.Fixed, scales *Scales) Reason {
	curve := p.Tags.Validation.Curve
	if rule := p.TagRule(e); rule != nil {
		var told bool
		if value, told = scales.onOwnScale(w, rule, value); !told {
			return ReasonScale
		}
		curve = rule.Curve
	}
	v, ok := opinionOf(curve, value)
	if !ok {
		return ReasonRange
	}
	e.Value = int32(v / 4)
	return ""
}

// payment returns the factor for a payment in US dollars.
func (p *Params) payment(paid fixed.Fixed) fixed.Fixed {
	if paid <= 0 {
		return fixed.One
	}
	full := fixed.Int(p.Evidence.FullPayment + 1).Log2()
	return min(p.Evidence.MaxPayment,
		fixed.One+(fixed.One+min(paid, fixed.Int(1<<30))).Log2().Mul(p.Evidence.MaxPayment-fixed.One).Div(full))
}

// rule returns the rule of a row and the number of its tag, or why it has none that counts.
func (p *Params) rule(row *Row) (rule uint8, tag int32, reason Reason) {
	if row.Validation {
		return p.validation(row.Tag1), 0, ""
	}
	at, known := p.Tags.place(row.Client(), row.Tag1)
	if !known {
		return 0, 0, ReasonUnknownTag
	}
	if r := p.Tags.rules[at.rule]; p.Tags.use[r.Channel] != UseScore || r.Weight == 0 {
		return 0, 0, ReasonChannel
	}
	return uint8(at.rule), int32(at.number), ""
}

// decay returns the factor for an age in seconds.
func (p *Params) decay(age int64) fixed.Fixed {
	const day = 24 * 60 * 60
	return p.powers.Exp2Neg(fixed.Ratio(age, int64(p.Evidence.HalfLifeDays)*day))
}
