package governance

import "time"

// Mode says how an agent serves.
type Mode string

// Modes, the most restrictive last.
const (
	Normal      Mode = "normal"
	Degraded    Mode = "degraded"    // slower or fewer answers
	Maintenance Mode = "maintenance" // nothing new is accepted until the window ends
	Stopped     Mode = "shutdown"    // nothing new is accepted
)

// MaxScoreAge is how old the agent's own score may be. It is read every ten minutes.
const MaxScoreAge = time.Hour

// Own is what is known of the agent itself.
type Own struct {
	Score Score
	// Before is State.Standing of the last evaluation, which the caller keeps across restarts; Normal
	// or empty at the first. An operator ends a shutdown by setting it to Normal.
	Before Mode
}

// State is the mode of an agent at a time.
type State struct {
	Mode    Mode
	Reasons []Reason
	// Standing is the mode by reputation alone: normal, degraded or shutdown.
	Standing Mode
	Own      Score
}

// Mode tells how the agent serves at a time. A score that is old changes nothing; without any the
// agent is degraded where its policy has a threshold, because nothing shows that it is reached.
func (p *Policy) Mode(own Own, now time.Time) State {
	own.Score = own.Score.orUnrated()
	s := State{Own: own.Score}
	s.Standing, s.Reasons = p.standing(own, now)
	s.Mode = s.Standing
	if s.Mode == Stopped {
		return s
	}
	if end, ok := p.windowEnd(now); ok {
		s.Mode = Maintenance
		s.Reasons = append(s.Reasons, Reason{Code: CodeMaintenance, Rule: "rules.upgrade.maintenanceWindow",
			Effect: Deny, Text: "the agent is in its maintenance window", Until: end})
	}
	return s
}

// standing is the mode by reputation. Degradation reads the lower bound, the shutdown the upper one.
func (p *Policy) standing(own Own, now time.Time) (Mode, []Reason) {
	rules := p.file.Rules
	least := rules.Reputation.DegradeServiceBelowScore
	stale := own.Score.At.IsZero() || now.Sub(own.Score.At) > MaxScoreAge
	stop, why := p.stops(own, stale)
	switch {
	case stop:
		return Stopped, []Reason{why}
	case least == nil:
		return Normal, nil
	case stale && (own.Before == Normal || own.Before == ""):
		return p.unproven(own, *least)
	case stale:
		return Degraded, []Reason{{Code: CodeStale, Rule: "rules.reputation.degradeServiceBelowScore", Effect: Degrade,
			Text: "the agent was degraded, and its score is not known now", Need: number(*least)}}
	case own.Score.Low < *least:
		return Degraded, []Reason{low(CodeDegraded, Degrade, "rules.reputation.degradeServiceBelowScore",
			"the agent's own score does not reach what full service asks for", own.Score.Low, *least)}
	}
	return Normal, nil
}

// unproven is the standing of an agent that was not degraded and whose score is old or was never read.
func (p *Policy) unproven(own Own, least float64) (Mode, []Reason) {
	r := Reason{Code: CodeStale, Rule: "rules.reputation.degradeServiceBelowScore", Effect: Allow,
		Text: "the agent's own score is old: its mode stays as it was", Need: number(least)}
	if own.Before == Normal {
		return Normal, []Reason{r}
	}
	r.Effect, r.Text = Degrade, "the agent's own score was never read"
	return Degraded, []Reason{r}
}

// stops reports whether the agent is shut down, and why: its score is too low, or it was shut down before and
// either may not restart by itself or has no known score.
func (p *Policy) stops(own Own, stale bool) (bool, Reason) {
	rules := p.file.Rules.Shutdown
	if !rules.AutoShutdownOnLowReputation || rules.ShutdownThreshold == nil {
		return false, Reason{}
	}
	r := low(CodeShutdown, Deny, "rules.shutdown.shutdownThreshold", "the agent's own score is too low to serve",
		own.Score.High, *rules.ShutdownThreshold)
	switch {
	case !stale && own.Score.High < *rules.ShutdownThreshold:
		return true, r
	case own.Before != Stopped:
		return false, Reason{}
	case !rules.AutoRestartWhenFixed:
		r.Text = "the agent was shut down, and its operator has not started it again"
		return true, r
	case stale:
		r.Text = "the agent was shut down, and its score is not known now"
		return true, r
	}
	return false, Reason{}
}

// windowEnd returns the end of the maintenance window that a time lies in.
func (p *Policy) windowEnd(now time.Time) (time.Time, bool) {
	length := p.file.Rules.Upgrade.maintenance()
	if p.window == nil || length == 0 {
		return time.Time{}, false
	}
	now = now.UTC()
	start, ok := time.Time{}, false
	for next := p.window.Next(now.Add(-length)); !next.IsZero() && !next.After(now); next = p.window.Next(next) {
		start, ok = next, true
	}
	return start.Add(length), ok
}
