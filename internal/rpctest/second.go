package rpctest

import (
	"maps"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// Second serves the same chain at another URL, as another endpoint of it: with its
// own faults, rules and head, and everything mined or forked on c. Mine on c only.
func (c *Chain) Second(t testing.TB) *Chain {
	t.Helper()
	s := &Chain{Registries: c.Registries, opts: c.opts, id: c.opts.ChainID, byHash: map[common.Hash]*Block{},
		calls: map[string]int{}, of: c}
	s.sync()
	s.srv = httptest.NewServer(s)
	t.Cleanup(func() {
		s.srv.CloseClientConnections()
		s.srv.Close()
	})
	return s
}

// Freeze makes a second endpoint stay on the chain as it is now.
func (c *Chain) Freeze(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = frozen
}

// sync takes over what the first endpoint has.
func (c *Chain) sync() {
	if c.of == nil {
		return
	}
	c.of.mu.Lock()
	blocks, byHash, safe, finalized := c.of.blocks, maps.Clone(c.of.byHash), c.of.safe, c.of.finalized
	c.of.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.frozen || len(c.blocks) == 0 {
		c.blocks, c.byHash, c.safe, c.finalized = blocks, byHash, safe, finalized
	}
}
