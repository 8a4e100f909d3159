package documents

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/internal/rpctest"
	"repute/resolver"
)

// gateways have none of some CIDs: they say so twice, then they search without end.
type gateways struct {
	mu    sync.Mutex
	asked map[string]int
	hung  int
}

func (g *gateways) FetchIfChanged(ctx context.Context, uri string, _ resolver.Validators) (resolver.Document, error) {
	if strings.HasSuffix(uri, "/new") {
		return resolver.Document{Bytes: []byte(goodFile), Source: resolver.SourceIPFS, FetchedAt: time.Now()}, nil
	}
	g.mu.Lock()
	g.asked[uri]++
	n := g.asked[uri]
	if n > 2 {
		g.hung++
	}
	g.mu.Unlock()
	if n > 2 {
		<-ctx.Done()
	}
	return resolver.Document{}, &resolver.Error{Reason: resolver.ReasonGateway, Retry: true}
}

func (g *gateways) busy() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.hung
}

// Files on ipfs that nobody has any more hold no new ones, however many they are.
func TestDeadCIDsHoldNobody(t *testing.T) {
	t.Parallel()
	const dead = 30
	db := openStore(t)
	c := rpctest.New(t, rpctest.Options{})
	for i := range uint64(dead) {
		c.Mine(c.Register(i, rpctest.Account(1), fmt.Sprintf("%s/%d", someCID, i)))
	}
	index(t, db, c)
	g := &gateways{asked: map[string]int{}}
	d := newLoop(t, db, Options{RetryMin: time.Millisecond})
	d.fetch = g
	defer running(t, d)()
	_, parallel := portions("ipfs")
	eventually(t, "all workers wait for what nobody has", func() bool { return g.busy() >= parallel })
	c.Mine(c.Register(dead, rpctest.Account(1), someCID+"/new"))
	index(t, db, c)
	end := time.Now().Add(jobBudget) // by then the first of those that hang would end
	eventually(t, "the new one is read", func() bool { return document(t, db, c, dead).Status == repute.DocumentOK })
	if time.Now().After(end) {
		t.Error("the new one waited for the old ones")
	}
}
