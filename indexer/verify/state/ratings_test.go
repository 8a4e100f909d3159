package state

import (
	"context"
	"log/slog"
	"testing"

	"repute/indexer/node"
	"repute/internal/livedin"
	"repute/internal/rpctest"
	"repute/store/verifydb"
)

// The questions about an agent with very many clients are not all in memory at once,
// and all are asked.
func TestClientsAreAskedInPortions(t *testing.T) {
	t.Parallel()
	dn := livedin.New(t)
	head := dn.Head()
	n, err := node.New(dn.RPCURL(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	c := New(nil, dn.Chain(), nil, slog.New(slog.DiscardHandler)).at(n, head)
	clients := make([]verifydb.ClientThen, 3*clientsAtOnce)
	for i := range clients {
		clients[i].Client = rpctest.Account(uint64(i + 1_000_000)) // none of them gave any
	}
	most := 0
	c.spend = func(context.Context, int) error {
		most = max(most, len(c.calls))
		return nil
	}
	c.ratings(&verifydb.AgentThen{}, clients)
	if err := c.ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(clients); c.asked != want || most > 3*clientsAtOnce || len(c.gaps) > 0 || len(c.unanswered) > 0 {
		t.Errorf("%d of %d questions were asked, %d held at once; %d gaps, %v", c.asked, want, most, len(c.gaps),
			c.unanswered)
	}
}
