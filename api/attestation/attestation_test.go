package attestation

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/api/wire"
)

// decisions draws decisions on the agents of one account.
func decisions(t *rapid.T) (out []Judged) {
	for range rapid.IntRange(1, MaxAgents).Draw(t, "agents") {
		var d Judged
		d.Agent = wire.ID(rapid.StringMatching(`8453:[1-9][0-9]{0,3}`).Draw(t, "id"))
		d.Status = rapid.SampledFrom([]string{"rated", "thin", "unrated"}).Draw(t, "status")
		d.Low = rapid.Float64Range(-100, 100).Draw(t, "low")
		d.Score = rapid.Float64Range(d.Low, 100).Draw(t, "score")
		d.High = rapid.Float64Range(d.Score, 100).Draw(t, "high")
		least := rapid.Float64Range(-100, 100).Draw(t, "least")
		d.Demanded.MinScore = &least
		if d.Low < least || d.Status == "unrated" {
			d.Reasons = append(d.Reasons, wire.DecisionReason{ID: "trust.minReputation"})
		}
		if rapid.IntRange(0, 9).Draw(t, "reject") == 0 {
			d.Reasons = append(d.Reasons, wire.DecisionReason{ID: "keptOut.reject"})
		}
		out = append(out, d)
	}
	return out
}

// TestWorstAgentDecides: an account passes when all of its agents do and fails when one does.
func TestWorstAgentDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := decisions(t)
		e := Issuer{URL: "https://index.example", Now: time.Unix(1, 5)}.Evaluate(&Query{}, nil, all)
		fails, passes := 0, 0
		for _, d := range all {
			isBad := d.Status == "rated" && d.High < *d.Demanded.MinScore
			for _, r := range d.Reasons {
				isBad = isBad || r.ID == "keptOut.reject"
			}
			if isBad {
				fails++
			}
			if len(d.Reasons) == 0 {
				passes++
			}
		}
		want := Uncertain
		switch {
		case fails > 0:
			want = Fail
		case passes == len(all):
			want = Pass
		}
		if e.Decision != want || len(e.Agents) != len(all) || (e.Score == nil) != (e.NullReason != "") ||
			e.Score != nil && (*e.Score < 0 || *e.Score > 1) || (e.Decision == Pass) != (e.ReasonCode == demandsMet) {
			t.Fatalf("%+v, want %s", e, want)
		}
	})
}

// TestIsCurrent: an index is current where it sees the head, its newest block is young and scores follow.
func TestIsCurrent(t *testing.T) {
	t.Parallel()
	zero, one, behind, old := int64(0), int64(1), int64(maxBehind/time.Second)+1, int64(maxLag/time.Second)+1
	for name, change := range map[string]func(*repute.ChainStatus){
		"head unseen":  func(c *repute.ChainStatus) { c.LagBlocks = nil },
		"time unknown": func(c *repute.ChainStatus) { c.LagSeconds = nil },
		"frozen node":  func(c *repute.ChainStatus) { c.LagSeconds = &old },
		"scores late":  func(c *repute.ChainStatus) { c.Scoring.Late = true },
		"halted":       func(c *repute.ChainStatus) { c.Halted = true },
		"stalled":      func(c *repute.ChainStatus) { c.Stalled = true },
		"events lost":  func(c *repute.ChainStatus) { c.Completeness.Status = repute.Incomplete },
		"behind":       func(c *repute.ChainStatus) { c.LagBlocks, c.LagSeconds = &one, &behind },
	} {
		var c repute.ChainStatus
		if c.LagBlocks, c.LagSeconds = &zero, &zero; !IsCurrent(c) {
			t.Fatal("a current index is not")
		}
		if change(&c); IsCurrent(c) {
			t.Errorf("%s is current", name)
		}
	}
	quiet := repute.ChainStatus{AsOf: repute.AsOf{LagBlocks: &zero, LagSeconds: &behind}}
	if !IsCurrent(quiet) {
		t.Error("a chain without newer blocks is not current")
	}
}
