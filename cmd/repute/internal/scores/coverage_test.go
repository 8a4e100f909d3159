package scores

import (
	"bytes"
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
)

func TestPrintCoverage(t *testing.T) {
	t.Parallel()
	states := []repute.SourceState{{Source: "agentbook", Status: "ok", Complete: 100},
		{Source: "bab", Status: "incomplete", Reason: "no route to it", Complete: 40, Kept: 3}}
	covered := repute.ChainStatus{Scoring: repute.Scoring{VerifiedTo: 90, Verified: true, Sources: states,
		Coverage: repute.Coverage{
			BySource: map[string]int64{"agentbook": 30, "bab": 4},
			ToFifty: &repute.LiftPrice{Cents: 47_000, Units: 5000, Priced: []string{"agentbook"},
				Unpriced: []string{"bab"}},
			Records: repute.Counted{All: 200, Counted: 50}, Raters: repute.Counted{All: 30, Counted: 3},
			Agents: repute.Counted{All: 40, Counted: 12}, Several: 8, ByRoots: 20, Rated: 6, Thin: 2,
			Left: map[string]int64{"scale": 10, "no-weight": 100, "unknown-tag": 40}}}}
	covered.ID, covered.Name = 8453, "base"
	empty := repute.ChainStatus{}
	empty.ID, empty.Name = 1, "ethereum"
	var out bytes.Buffer
	p := &cli.Program{Stdout: &out}
	if err := printCoverage(p, []repute.ChainStatus{covered, empty}); err != nil {
		t.Fatal(err)
	}
	const want = `chain 8453 base
  ratings that count                50 of 200   25.0 %
    of these by roots               20 of 50    40.0 %
    of these by agentbook           30 of 50    60.0 %
    of these by bab                 4 of 50     8.0 %
  raters that count                 3 of 30     10.0 %
  agents with ratings that count    12 of 40    30.0 %
  agents with three raters or more  8 of 40     20.0 %
  agents rated                      6 of 40     15.0 %
  agents thin                       2 of 40     5.0 %
  left out: no-weight               100 of 200  50.0 %
  left out: unknown-tag             40 of 200   20.0 %
  left out: scale                   10 of 200   5.0 %

  blocks of these scores                verified to block 90
  source agentbook                      ok; last read completely as of 1970-01-01T00:01:40Z
  source bab                            incomplete: no route to it; last read completely as of 1970-01-01T00:00:40Z; 3 credentials of then count on
  to lift a new agent to 50             $470 by published prices (agentbook)
  not counted, without published price  bab

chain 1 ethereum: no ratings before the end of the newest closed epoch
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
