package rating

import (
	"repute/trust/fixed"
)

// Mean is the mean of one identity's records. Older records weigh less; the strength
// decays with the newest one.
type Mean struct {
	value, weight, decay, payment, newest fixed.Fixed
	Last                                  int64 // Unix seconds
	count                                 int
	opinion, rule                         fixed.Fixed // of the first
}

// Add takes in a rating, decayed to the time of the score.
func (m *Mean) Add(p *Params, e *Record, at int64) {
	decay, opinion, rule := p.decay(at-int64(e.Time)), e.Opinion(), p.rules[e.Rule].weight
	switch m.count++; m.count {
	case 1: // sums are only needed once there are others
		m.opinion, m.rule = opinion, rule
	case 2:
		m.value, m.weight = m.opinion.Mul(m.decay), m.rule.Mul(m.decay)
		fallthrough
	default:
		m.value += opinion.Mul(decay)
		m.weight += rule.Mul(decay)
	}
	m.decay += decay
	m.payment = max(m.payment, e.paymentFactor())
	m.newest = max(m.newest, decay)
	m.Last = max(m.Last, int64(e.Time))
}

// Single returns what Value of a Mean with this record alone returns.
func Single(p *Params, e *Record, at int64) (value, strength fixed.Fixed) {
	decay := p.decay(at - int64(e.Time))
	if decay == 0 {
		return 0, 0
	}
	return e.Opinion(), p.rules[e.Rule].weight.Mul(e.paymentFactor()).Mul(decay)
}

// Value returns the value and the evidence it gives at full weight.
func (m *Mean) Value() (value, strength fixed.Fixed) {
	if m.decay == 0 {
		return 0, 0 // too old to weigh anything
	}
	if m.count == 1 {
		return m.opinion, m.rule.Mul(m.payment).Mul(m.newest) // exactly
	}
	return fixed.Clamp(m.value.Div(m.decay), -fixed.One), m.weight.Div(m.decay).Mul(m.payment).Mul(m.newest)
}
