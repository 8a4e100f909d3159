package rpctest

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// SocketURL is where the chain is served over ws, with subscriptions to new heads.
func (c *Chain) SocketURL() string { return strings.Replace(c.srv.URL, "http://", "ws://", 1) }

// Mute stops the announcing of new heads, while subscriptions stay open.
func (c *Chain) Mute(muted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = muted
}

// HangUp closes all ws connections. Clients may connect again at once.
func (c *Chain) HangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for server := range c.sockets {
		server.Stop()
	}
	clear(c.sockets)
}

// Subscriptions counts those to new heads so far.
func (c *Chain) Subscriptions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subscribed
}

// socket serves one ws connection.
func (c *Chain) socket(w http.ResponseWriter, r *http.Request) {
	server := rpc.NewServer()
	must(server.RegisterName("eth", &socketAPI{c}))
	c.mu.Lock()
	if c.sockets == nil {
		c.sockets = map[*rpc.Server]bool{}
	}
	c.sockets[server] = true
	c.mu.Unlock()
	server.WebsocketHandler([]string{"*"}).ServeHTTP(w, r)
}

// socketAPI answers as ServeHTTP does; only the faults of single calls work. Its methods are those that go-ethereum's
// server finds by their names: eth_chainId calls ChainId.
type socketAPI struct{ c *Chain }

// ask answers a call as over HTTP: rules and counts apply, faults of whole requests do not.
func (a *socketAPI) ask(method string, params ...any) (any, error) {
	a.c.sync()
	call := Call{Method: method}
	for _, p := range params {
		raw, err := json.Marshal(p)
		must(err)
		call.Params = append(call.Params, raw)
	}
	result, fail := a.c.Ask(&call)
	if fail != nil {
		return nil, fail
	}
	return result, nil
}

// ChainId is eth_chainId.
func (a *socketAPI) ChainId() (any, error) { return a.ask("eth_chainId") }

// GetBlockByNumber is eth_getBlockByNumber.
func (a *socketAPI) GetBlockByNumber(tag string, full bool) (any, error) {
	return a.ask("eth_getBlockByNumber", tag, full)
}

// GetLogs is eth_getLogs.
func (a *socketAPI) GetLogs(filter map[string]any) (any, error) { return a.ask("eth_getLogs", filter) }

// NewHeads is eth_subscribe of newHeads.
func (a *socketAPI) NewHeads(ctx context.Context) (*rpc.Subscription, error) {
	notifier, ok := rpc.NotifierFromContext(ctx)
	if !ok {
		return nil, rpc.ErrNotificationsUnsupported
	}
	sub := notifier.CreateSubscription()
	heads := make(chan *Block, 1000)
	first := a.c.first()
	first.mu.Lock()
	first.watchers = append(first.watchers, heads)
	first.mu.Unlock()
	a.c.mu.Lock()
	a.c.subscribed++
	a.c.mu.Unlock()
	go func() {
		for {
			select {
			case <-sub.Err():
				return
			case b := <-heads:
				if !a.c.isMuted() {
					_ = notifier.Notify(sub.ID, b.Header) // the client may have gone
				}
			}
		}
	}()
	return sub, nil
}

// isMuted is asked for each announcement, so that Mute acts at once.
func (c *Chain) isMuted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.muted
}

// first is the chain that is mined on.
func (c *Chain) first() *Chain {
	if c.of != nil {
		return c.of
	}
	return c
}
