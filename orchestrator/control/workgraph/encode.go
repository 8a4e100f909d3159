package workgraph

import (
	"cmp"
	"encoding/json"
	"strconv"

	"repute"
	"repute/api/wire"
	"repute/api/wire/work"
	"repute/internal/httpapi"
	"repute/orchestrator/approval"
	"repute/orchestrator/control"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/treasury"
	"repute/orchestrator/standard"
	"repute/policy"
)

// shownResult bounds the result of a step in GraphQL, in bytes; the run under /v1 has the whole.
const shownResult = 4 << 10

// runInGraph converts a run into its form in GraphQL, without what Reader.Run adds.
func runInGraph(w *control.Run) (out work.Run, err error) {
	out = work.Run{Limits: limitsInGraph(&w.Limits), Reasons: reasonsInGraph(w.Reasons), Cancel: wire.OrNull(w.Cancel),
		Phases: wire.Each(w.Phases, phaseInGraph), Steps: stepsInGraph(w.Steps, w.Plan),
		Decisions: wire.Each(w.Decisions, decisionInGraph), Approvals: wire.Each(w.Approvals, approvalInGraph),
		Awaited: wire.Each(w.Awaited, awaitedInGraph), Events: wire.Each(w.Treasury, eventInGraph),
		Chain: work.DecisionChain{Count: wire.Long(w.Head.Count), Head: wire.Hash(w.Head.Hash.Hex())}}
	if w.Head.Signer != nil {
		signer := wire.AddressOf(*w.Head.Signer)
		out.Chain.Signer = &signer
	}
	if w.Used != nil {
		out.Used = usedInGraph(w.Used)
	}
	if s := w.Summary; s != nil {
		out.Summary = &work.Summary{Text: s.Text, KeyActions: s.KeyActions, Receipts: s.Receipts, Warnings: s.Warnings}
	}
	if w.GateDecision != nil {
		out.Trust = trustInGraph(w.GateDecision)
	}
	for _, p := range w.Phases {
		if p.Phase == repute.PhaseVerify.String() && p.Attempt == w.Attempt {
			if out.Verification, err = verificationInGraph(json.RawMessage(p.Result)); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// limitsInGraph converts limits; what is absent has no limit.
func limitsInGraph(a *rest.Amounts) work.Amounts {
	out := work.Amounts{Steps: wire.Long(a.Steps), ToolCalls: wire.Long(a.ToolCalls), Writes: wire.Long(a.Writes),
		RuntimeMs: wire.Long(a.RuntimeMS), GasWei: wire.OrNull(wire.BigInt(a.GasWei)),
		CostUsd: wire.OrNull(wire.Decimal(a.CostUSD))}
	out.Tokens = wire.OrNull(wire.Long(a.Tokens))
	return out
}

// usedInGraph converts used amounts; what is absent is zero.
func usedInGraph(a *rest.Amounts) *work.Amounts {
	out := limitsInGraph(a)
	tokens, cost, gas := wire.Long(a.Tokens), wire.Decimal("0"), wire.BigInt("0")
	if out.CostUsd == nil {
		out.CostUsd = &cost
	}
	if out.GasWei == nil {
		out.GasWei = &gas
	}
	out.Tokens = &tokens
	return &out
}

// reasonsInGraph converts reasons.
func reasonsInGraph(list []policy.Reason) []work.Reason {
	return wire.Each(list, func(r policy.Reason) work.Reason {
		return work.Reason{ID: r.ID, Effect: string(r.Effect), Text: r.Text, Have: wire.OrNull(r.Have),
			Need: wire.OrNull(r.Need)}
	})
}

// phaseInGraph converts the record of a phase.
func phaseInGraph(p control.Phase) work.Phase {
	return work.Phase{Phase: p.Phase, Status: string(p.Status), Attempt: int32(min(p.Attempt, maxAttempt)),
		Error: wire.OrNull(p.Error), Started: *wire.EncodeTime(p.Started), Ended: *wire.EncodeTime(p.Ended)}
}

// stepsInGraph joins the steps of the plan with what came of them. Steps that the plan does not have follow.
func stepsInGraph(done []control.Step, plan *control.Plan) []work.Step {
	out, known := []work.Step{}, map[string]int{}
	if plan != nil {
		for _, s := range plan.Steps {
			known[s.ID] = len(out)
			out = append(out, work.Step{ID: s.ID, Status: "planned", Description: wire.OrNull(s.Description),
				Agent: wire.OrNull(s.Agent), DependsOn: rest.OrEmpty(s.DependsOn)})
		}
	}
	for _, s := range done {
		at, planned := known[s.ID]
		if !planned {
			at = len(out)
			out = append(out, work.Step{ID: s.ID, DependsOn: []string{}})
		}
		out[at].Status, out[at].Error, out[at].Result = s.Status, wire.OrNull(s.Error), wire.OrNull(httpapi.Cut(string(s.Result), shownResult))
	}
	return out
}

// verificationInGraph reads the stored result of the phase verify; nil if none is stored.
func verificationInGraph(raw json.RawMessage) (*work.Verification, error) {
	v, err := control.VerificationOf(raw)
	if v == nil || err != nil {
		return nil, err
	}
	return &work.Verification{Score: v.Score, Checks: wire.Each(v.Checks, func(c standard.Check) work.Check {
		return work.Check{Name: c.Name, Passed: c.Passed, Details: wire.OrNull(c.Details)}
	})}, nil
}

// trustInGraph converts a decision of the trust gate.
func trustInGraph(g *control.GateDecision) *work.Trust {
	return &work.Trust{AgentID: wire.OrNull(wire.ID(g.AgentID)), Effect: string(g.Effect), Status: g.Status,
		Score: g.Score,
		Low:   g.Low, High: g.High, Confidence: g.Confidence, Tier: int32(g.Tier),
		ValueAtRisk: wire.BigInt(cmp.Or(g.Value, "0")),
		Policy:      wire.Hash(g.Policy), Reasons: reasonsInGraph(g.Reasons), At: *wire.EncodeTime(g.At)}
}

// decisionInGraph converts a decision.
func decisionInGraph(d control.PolicyDecision) work.Decision {
	return work.Decision{Number: wire.Long(d.Number), Phase: d.Phase, Kind: string(d.Kind), Subject: d.Subject,
		Effect:  d.Effect,
		Attempt: int32(min(d.Attempt, maxAttempt)), Reasons: reasonsInGraph(d.Reasons),
		Policy: wire.Hash(d.Policy.Hex()),
		Hash:   wire.Hash(d.Hash.Hex()), At: *wire.EncodeTime(d.At)}
}

// approvalInGraph converts the answer of a person.
func approvalInGraph(a control.Approval) work.Approval {
	return work.Approval{Subject: a.Subject, Approved: a.Approved, By: a.By, Reason: wire.OrNull(a.Reason),
		At: *wire.EncodeTime(a.At)}
}

// awaitedInGraph converts a decision that is left to a person.
func awaitedInGraph(a control.Awaited) work.Awaited {
	out := work.Awaited{Subject: a.Subject, Reasons: reasonsInGraph(a.Reasons)}
	if a.Shown != nil {
		out.Shown = shownInGraph(a.Shown)
	}
	return out
}

// shownInGraph converts what a person is shown of a transaction.
func shownInGraph(s *approval.Shown) *work.Shown {
	amount := func(a approval.ShownAmount) string { return a.Text }
	return &work.Shown{ChainID: wire.Long(s.ChainID), Target: wire.Address(s.Target), Payee: wire.OrNull(s.Payee),
		ValueWei: wire.BigInt(cmp.Or(s.Value, "0")), Purpose: s.Purpose, Calls: wire.Each(s.Calls, callInGraph),
		Amounts: wire.Each(s.Amounts, amount), Effects: wire.Each(s.Effects, amount),
		Events: wire.Each(s.Events, func(e approval.ShownEvent) string {
			return e.Kind + " of " + e.Text + " from " + e.From + " to " + e.To
		}), EventsOmitted: wire.Long(s.EventsOmitted), AgentStatus: s.Agent.Status, AgentScore: s.Agent.Score,
		Low:       s.Agent.Low,
		AgentTier: int32(s.Agent.Tier),
		Names: wire.Each(s.Names, func(n approval.ShownName) work.Name {
			return work.Name{Address: n.Address, Names: rest.OrEmpty(n.Names)}
		})}
}

// callInGraph writes a call in one line: the function, or its selector, and the contract.
func callInGraph(c approval.ShownCall) string {
	name := c.Function
	switch {
	case name == "" && c.Selector != "":
		name = "unknown function " + c.Selector
	case name == "":
		name = "plain transfer"
	}
	if c.Target != "" {
		name += " of " + c.Target
	}
	return name
}

// receiptInGraph converts a receipt.
func receiptInGraph(r repute.Receipt) work.Receipt {
	return work.Receipt{ID: wire.ID(strconv.FormatInt(r.ID, 10)), Step: wire.OrNull(r.Step), Kind: string(r.Kind),
		Ref:     r.Ref,
		Summary: r.Summary, ChainID: wire.OrNull(wire.Long(r.Chain)), Domain: wire.OrNull(r.Domain), Done: r.Done,
		Error: wire.OrNull(r.Error), Started: *wire.EncodeTime(r.Started), Ended: wire.EncodeTime(r.Ended)}
}

// eventInGraph converts an event of a treasury.
func eventInGraph(e treasury.TreasuryEvent) work.TreasuryEvent {
	out := work.TreasuryEvent{ChainID: wire.Long(e.ChainID), Treasury: wire.Address(e.Treasury), Kind: e.Kind,
		Transaction: wire.Hash(e.Transaction), Block: wire.Long(e.Block), Finality: e.Finality,
		Fields: string(e.Fields)}
	if e.BlockTime != nil {
		out.BlockTime = wire.EncodeTime(*e.BlockTime)
	}
	return out
}
