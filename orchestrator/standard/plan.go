package standard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"repute"
)

// Bounds of plans, in bytes.
const (
	maxStepID   = 64
	MaxStepText = 4 << 10
	maxOnDemand = 64 // agents
)

// StepText returns a text that others wrote as the description of a step: the beginning of one that is long.
func StepText(s string) string {
	const most = 1000
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// CheckPlan refuses a plan that cannot be run: cycles, unknown steps and agents, too many steps. known tells which
// slugs there are. The error is repute.ErrInvalid. Ids of steps may have all other characters than the slash: what
// shows one, or puts one into a command, MUST escape or quote it.
func CheckPlan(p Plan, most int, known func(slug string) bool) error {
	if len(p.Steps) == 0 {
		return repute.Invalid("plan.steps", "is empty", "at least one step")
	}
	if len(p.Steps) > most {
		return repute.Invalid("plan.steps", fmt.Sprintf("has %d steps", len(p.Steps)),
			fmt.Sprintf("at most %d are left of the budget", most))
	}
	seen := make(map[string]bool, len(p.Steps))
	for i, s := range p.Steps {
		at := fmt.Sprintf("plan.steps[%d]", i)
		switch {
		case s.ID == "" || len(s.ID) > maxStepID ||
			strings.Contains(s.ID, "/"): // names of transactions are joined by it
			return repute.Invalid(at+".stepId", fmt.Sprintf("%.80q is no id", s.ID),
				fmt.Sprintf("1 to %d bytes without a slash", maxStepID))
		case seen[s.ID]:
			return repute.Invalid(at+".stepId", fmt.Sprintf("%q is another step's", s.ID), "an id of its own")
		case len(s.Description) > MaxStepText || len(s.Input) > MaxInput:
			return repute.Invalid(at, "is too long", fmt.Sprintf("descriptions of %d bytes, inputs of %d", MaxStepText,
				MaxInput))
		case !known(s.Agent):
			return repute.Invalid(at+".agentSlug", fmt.Sprintf("%.80q is not registered here", s.Agent),
				"the slug of an agent")
		}
		seen[s.ID] = true
	}
	if len(p.OnDemand) > maxOnDemand {
		return repute.Invalid("plan.onDemand", fmt.Sprintf("has %d agents", len(p.OnDemand)),
			fmt.Sprintf("at most %d", maxOnDemand))
	}
	for i, slug := range p.OnDemand {
		if !known(slug) {
			return repute.Invalid(fmt.Sprintf("plan.onDemand[%d]", i),
				fmt.Sprintf("%.80q is not registered here", slug), "the slug of an agent")
		}
	}
	for i, s := range p.Steps {
		for _, d := range s.DependsOn {
			if !seen[d] {
				return repute.Invalid(fmt.Sprintf("plan.steps[%d].dependsOn", i), fmt.Sprintf("%.80q is no step", d),
					"steps of this plan")
			}
		}
	}
	for _, slug := range slices.Sorted(maps.Keys(p.Identities)) {
		if _, err := repute.ParseAgentRef(p.Identities[slug]); err != nil || !slices.Contains(p.Agents(), slug) {
			return repute.Invalid("plan.identities", fmt.Sprintf("%.80q of %.80q is no id of an agent of the plan",
				p.Identities[slug], slug), "the slug of an agent of the plan, with "+repute.AgentIDForms)
		}
	}
	return checkCycles(p)
}

// CheckIdentity refuses an agent whose identity is not the one that the plan wants. has is nil for none. The error is
// repute.ErrInvalid.
func (p Plan) CheckIdentity(slug string, has *repute.AgentID) error {
	text, ok := p.Identities[slug]
	if !ok {
		return nil
	}
	want, err := repute.ParseAgentRef(text)
	if err != nil {
		return err
	}
	shown := "none"
	if has != nil {
		if want.TokenID == has.TokenID && (want.ChainID == 0 || want.ChainID == has.ChainID) &&
			(want.Registry == nil || *want.Registry == has.Registry) {
			return nil
		}
		shown = has.String()
	}
	return repute.Invalid("plan.identities."+slug,
		fmt.Sprintf("is %.120q, and the identity of the registered agent is %s",
			text, shown), "name the identity that the agent has, or register the agent that has this one")
}

// checkCycles takes away steps that wait for nothing until none is left.
func checkCycles(p Plan) error {
	waits := make(map[string]int, len(p.Steps))
	next := map[string][]string{}
	var free []string
	for _, s := range p.Steps {
		waits[s.ID] = len(s.DependsOn)
		for _, d := range s.DependsOn {
			next[d] = append(next[d], s.ID)
		}
		if len(s.DependsOn) == 0 {
			free = append(free, s.ID)
		}
	}
	done := 0
	for ; len(free) > 0; done++ {
		id := free[0]
		free = free[1:]
		for _, n := range next[id] {
			if waits[n]--; waits[n] == 0 {
				free = append(free, n)
			}
		}
	}
	if done == len(p.Steps) {
		return nil
	}
	var stuck []string
	for _, s := range p.Steps {
		if waits[s.ID] > 0 {
			stuck = append(stuck, s.ID)
		}
	}
	return repute.Invalid("plan.steps", "wait for each other: "+strings.Join(stuck, ", "), "an order that can be kept")
}

// Agents are the slugs of a plan, each once, in order.
func (p Plan) Agents() (out []string) {
	add := func(slug string) {
		if !slices.Contains(out, slug) {
			out = append(out, slug)
		}
	}
	for _, s := range p.Steps {
		add(s.Agent)
	}
	for _, slug := range p.OnDemand {
		add(slug)
	}
	return out
}
