package rpctest

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute/internal/chainserver"
)

// Second serves the same chain at an address of its own, as another endpoint of it by another
// host: with its own faults, rules and head, and everything mined or forked on c. Mine on c only.
func (c *Chain) Second(t testing.TB) *Chain {
	t.Helper()
	s := &Chain{Registries: c.Registries, opts: c.opts, id: c.opts.ChainID, byHash: map[common.Hash]*Block{}, of: c}
	s.Server = chainserver.Serve(source{s}, chainserver.Options{NoBlockTime: c.opts.NoBlockTime})
	s.sync()
	c.mu.Lock()
	c.others++
	host := fmt.Sprintf("127.0.0.%d", 1+c.others)
	c.mu.Unlock()
	s.srv = serveAt(t, host, s)
	return s
}

// serveAt serves at an address of this machine until the test ends. All of 127.0.0.0/8 are.
func serveAt(t testing.TB, host string, h http.Handler) *httptest.Server {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	srv.Start()
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// Freeze makes a second endpoint stay on the chain as it is now, until it is called with false. It has no effect on the
// first one, which is mined on.
func (c *Chain) Freeze(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = frozen
}

// sync takes over what the first endpoint has. It runs before each request, so that a second endpoint is never behind,
// unless it is frozen. The locks are taken one after the other, never both.
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
