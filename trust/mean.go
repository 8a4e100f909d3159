package trust

import (
	"repute/trust/fixed"
)

// decayedMean is the mean of one identity's records. Older records weigh less; the strength
// decays with the newest one.
type decayedMean struct {
	value, weight, decay, payment, newest fixed.Fixed
	last                                  int64 // Unix seconds
	count                                 int
	opinion, rule                         fixed.Fixed // of the first
}

// add takes in a rating, decayed to the time of the score.
func (m *decayedMean) add(p *Params, e *record, at int64) {
	decay, opinion, rule := p.decay(at-int64(e.time)), e.fixedValue(), p.rules[e.rule].weight
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
	m.payment = max(m.payment, e.paid())
	m.newest = max(m.newest, decay)
	m.last = max(m.last, int64(e.time))
}

// mean returns the value and the evidence it gives at full weight.
func (m *decayedMean) mean() (value, strength fixed.Fixed) {
	if m.decay == 0 {
		return 0, 0 // too old to weigh anything
	}
	if m.count == 1 {
		return m.opinion, m.rule.Mul(m.payment).Mul(m.newest) // exactly
	}
	return fixed.Clamp(m.value.Div(m.decay), -fixed.One), m.weight.Div(m.decay).Mul(m.payment).Mul(m.newest)
}
