package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"repute/trust"
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
		case g.Direction == string(trust.KeepsOut) && g.Passed:
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
	part := 1.0
	if v.Evidence > 0 {
		part = min(1, (sourced.Praise+sourced.Blame)/v.Evidence)
	}
	if int(sourced.Raters) >= v.TrustedFor+v.TrustedAgainst && part > 0.9 {
		return "their weight comes from sources alone (" + classes + ")"
	}
	return fmt.Sprintf("their weight comes from roots and, for %.0f %% of the evidence, from sources (%s)", 100*part, classes)
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

// missing says how many more opinions of +1 by raters of full weight an agent lacks for a gate that reads the lower
// bound, which is low now. What they do for the prior is not counted.
func (v resultView) missing(g Gate, low float64) string {
	const most = 1000
	units := 0.0
	for _, l := range g.Lacks {
		switch l.What {
		case "low":
			for units < most && v.lowWith(low, units) < l.Need {
				units++
			}
		case "paths":
			units = max(units, math.Ceil(l.Need-l.Have))
		}
	}
	switch {
	case units == 0:
		return "more than ratings"
	case units == 1:
		return "1 more trusted client"
	case units >= most:
		return "very many more"
	}
	return fmt.Sprintf("about %.0f more trusted clients", units)
}

// lowWith is the lower bound after so many more opinions of +1.
func (v resultView) lowWith(low, units float64) float64 {
	if v.Evidence == 0 || v.Confidence == 0 {
		return low
	}
	total, mean := v.Evidence/v.Confidence, v.Mean/100 // of base and evidence
	deviation := (v.Mean - low) / 100
	// The sums of squares and of values that mean and deviation were made of, the prior's part in them left as it is.
	value := v.average() * v.Evidence
	square := deviation*deviation*total*total + 2*value*mean - v.Evidence*mean*mean
	mean = (mean*total + units) / (total + units)
	spread := square + units - 2*(value+units)*mean + (v.Evidence+units)*mean*mean
	return 100 * (mean - math.Sqrt(max(0, spread))/(total+units))
}
