package agentdb_test

import (
	"math/big"
	"testing"

	"repute/store/agentdb"
)

// TestRuntimes: agents with a log are listed with their mode and policy, and their work is summed up by capability and
// currency.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	db := open(t)
	run := func(agent, outcome string, amount int64, currency string) agentdb.Entry {
		return agentdb.Entry{Kind: agentdb.Execution, Agent: agent, Capability: "echo", Outcome: outcome,
			Amount:   big.NewInt(amount),
			Decimals: 6, Currency: currency}
	}
	ok(t, agentdb.Add(t.Context(), db, run("a", "200", 500, "usdc"), run("a", "500", 0, "usdc"),
		run("a", "200", 700, "usdc"),
		run("a", "200", 3, "other"), run("a", "refunded", 0, "usdc"), run("a", "404", 0, "usdc"),
		run("a", "399", 0, "usdc"), agentdb.Entry{Kind: agentdb.Event, Agent: "b", Outcome: "started"}))
	ok(t, agentdb.Add(t.Context(), db, agentdb.Entry{Kind: agentdb.Event, Agent: "b", Outcome: "mode degraded"}))
	ok(t, agentdb.AddPolicy(t.Context(), db, agentdb.Policy{Agent: "a", Hash: [32]byte{7}}))
	list, err := agentdb.Runtimes(t.Context(), db, 10)
	ok(t, err)
	got := map[string]agentdb.Runtime{}
	for _, r := range list {
		got[r.Agent] = r
	}
	if len(list) != 2 || got["b"].Mode != "degraded" || got["b"].Since.IsZero() || got["a"].Mode != "normal" ||
		got["a"].Policy[:4] != "0x07" || got["a"].Seen.IsZero() {
		t.Errorf("%+v", list)
	}
	works, err := agentdb.Works(t.Context(), db, []string{"a", "b"})
	ok(t, err)
	if len(works) != 2 || works[0].Currency != "other" || works[0].Revenue != "3" || works[1].Runs != 6 ||
		works[1].Failed != 2 ||
		works[1].Paid != 2 || works[1].Revenue != "1200" || works[1].Price != "700" || works[1].Decimals != 6 {
		t.Errorf("%+v", works)
	}
	if one, err := agentdb.Runtimes(t.Context(), db, 1); err != nil || len(one) != 1 {
		t.Errorf("%+v %v", one, err)
	}
}
