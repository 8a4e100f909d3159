package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"repute/trust"
	"repute/trust/rating"
)

// serviceGate is the gate whose distance a sentence tells.
const serviceGate = "service"

// inWords says in one sentence how far an agent can be trusted and why.
func (s *Scored) inWords(v resultView) string {
	if s.Status == string(trust.Unrated) {
		why := "nothing is known of it"
		if s.Reason != nil {
			why = *s.Reason
		}
		return "unrated: " + why
	}
	parts := []string{strconv.FormatFloat(math.Round(s.Score*10)/10, 'f', -1, 64) + ": " + v.clients()}
	if basis := v.basis(); basis != "" {
		parts = append(parts, basis)
	}
	if s.Reason != nil {
		return strings.Join(append(parts, *s.Reason), "; ")
	}
	for _, g := range s.Gates {
		switch {
		case g.Direction == string(rating.KeepsOut) && g.Passed:
			parts = append(parts, fmt.Sprintf("the gate %q keeps it out", g.ID))
		case g.ID == serviceGate && g.Passed:
			parts = append(parts, "good for full service")
		case g.ID == serviceGate && s.Low < s.High:
			parts = append(parts, fmt.Sprintf("full service needs %s", v.missing(g, s.Low)))
		}
	}
	return strings.Join(parts, "; ")
}

// basis says where the weight of an agent's raters comes from, "" where none has weight.
func (v resultView) basis() string {
	sourced := v.Sourced
	switch {
	case v.TrustedFor+v.TrustedAgainst == 0:
		return ""
	case sourced == nil:
		return "their weight comes from roots"
	}
	classes := "class " + strings.Join(sourced.Classes, ", ")
	if len(sourced.Classes) > 1 {
		classes = "classes " + strings.Join(sourced.Classes, ", ")
	}
	part, trusted := 1.0, v.TrustedFor+v.TrustedAgainst
	if v.Evidence > 0 {
		part = min(1, (sourced.Praise+sourced.Blame)/v.Evidence)
	}
	switch alone := min(sourced.Alone, trusted); {
	case alone == trusted:
		return "their weight comes from sources alone (" + classes + ")"
	case alone > 0:
		return fmt.Sprintf("%d by roots and %d by sources alone; sources give %.0f %% of the evidence (%s)",
			trusted-alone,
			alone, 100*part, classes)
	}
	return fmt.Sprintf("their weight comes from roots and, for %.0f %% of the evidence, from sources (%s)", 100*part,
		classes)
}

// clients says how many clients have weight, and how they rate the agent.
func (v resultView) clients() string {
	who := fmt.Sprintf("%d trusted clients", v.TrustedFor+v.TrustedAgainst)
	if v.TrustedFor+v.TrustedAgainst == 1 {
		who = "1 trusted client"
	}
	if v.TrustedFor > 0 && v.TrustedAgainst > 0 {
		who += fmt.Sprintf(" (%d for it, %d against)", v.TrustedFor, v.TrustedAgainst)
	}
	return who + ", on average " + verdict(v.average())
}

// average is the mean opinion by evidence, -1 to 1, without the prior.
func (v resultView) average() float64 {
	var sum, weight float64
	for _, c := range v.Channels {
		sum, weight = sum+c.Evidence*c.Mean/100, weight+c.Evidence
	}
	if weight == 0 {
		return 0
	}
	return sum / weight
}

// verdict is the word for a mean opinion.
func verdict(opinion float64) string {
	for _, w := range []struct {
		least float64
		word  string
	}{{0.8, "excellent"}, {0.5, "good"}, {0.15, "lukewarm"}, {-0.15, "divided"}, {-0.5, "poor"}} {
		if opinion >= w.least {
			return w.word
		}
	}
	return "bad"
}

// missing says how many more opinions of +1 by raters of full vouched weight an agent lacks for a gate that reads the
// lower bound, which is low now. Such a gate reads what holds without sources too: what sources give counts for nothing
// where the bound is lower without it. What the opinions do for the prior is not counted.
func (v resultView) missing(g Gate, low float64) string {
	const most = 1000
	units, all := 0.0, v.moments(low)
	vouched := all.without(v.Sourced)
	for _, l := range g.Lacks {
		switch l.What {
		case "low":
			for units < most && min(all.lowWith(units), vouched.lowWith(units)) < l.Need {
				units++
			}
		case "paths":
			units = max(units, math.Ceil(l.Need-l.Have))
		}
	}
	who := "trusted client"
	if v.Sourced != nil {
		who = "client vouched for by roots"
	}
	switch {
	case units == 0:
		return "more than ratings"
	case units == 1:
		return "1 more " + who
	case units >= most:
		return "very many more"
	}
	return fmt.Sprintf("about %.0f more %s", units, strings.Replace(who, "client", "clients", 1))
}

// moments are the sums behind a mean and its deviation, with opinions from -1 to 1.
type moments struct {
	base, evidence float64 // weights of the prior and of what was said
	prior          float64 // what the prior adds to the sum of values
	mean, square   float64 // square is the sum of squares, with the prior's variance in it
}

// moments are the sums that a result with such a lower bound was made of.
func (v resultView) moments(low float64) moments {
	m := moments{evidence: v.Evidence, mean: v.Mean / 100}
	if v.Confidence > 0 {
		m.base = v.Evidence/v.Confidence - v.Evidence
	}
	m.prior = m.mean*(m.base+m.evidence) - v.average()*m.evidence
	m.square = m.squareOf((v.Mean - low) / 100)
	return m
}

// squareOf is the sum of squares that such a deviation was made of.
func (m moments) squareOf(deviation float64) float64 {
	total := m.base + m.evidence
	value := m.mean*total - m.prior
	return deviation*deviation*total*total + 2*value*m.mean - m.evidence*m.mean*m.mean
}

// without are the moments without what sources gave, nil for nothing. Its bounds tell mean and deviation.
func (m moments) without(given *sourced) moments {
	if given == nil {
		return m
	}
	m.evidence = max(0, m.evidence-given.Praise-given.Blame)
	m.mean = (given.Low + given.High) / 200
	m.square = m.squareOf((given.High - given.Low) / 200)
	return m
}

// lowWith is the lower bound after so many more opinions of +1, in points.
func (m moments) lowWith(units float64) float64 {
	total := m.base + m.evidence + units
	if total == 0 {
		return 0
	}
	evidence, value := m.evidence+units, m.mean*(m.base+m.evidence)-m.prior+units
	mean := (m.prior + value) / total
	spread := m.square + units - 2*value*mean + evidence*mean*mean
	return 100 * (mean - math.Sqrt(max(0, spread))/total)
}
