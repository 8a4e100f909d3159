package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/indexer/node/jsonrpc"
)

// peer is an endpoint of a Pool, with what is known of it beside its health.
// What it was seen not to have or to do is forgotten after a while.
type peer struct {
	*Node

	mu      sync.Mutex
	head    uint64    // newest block it is known to have, 0 when unknown
	looked  time.Time // when it was last asked for its head
	proven  time.Time // when it was last seen to serve the pool's chain
	pruned  uint64    // it has no logs from there on downwards
	refused uint64    // a range of so many blocks was refused,
	when    time.Time // then
	noLogs  time.Time // it does not answer eth_getLogs, until then
	doubted time.Time // what it says of the chain does not hold, until then
	shown   uint64    // newest block it has shown to have
	said    saying
	alone   bool // there is no other: nobody can do better
}

// How long a member's faults are remembered.
const (
	forgetRefusal  = time.Minute
	forgetNoMethod = 10 * time.Minute
	forgetDoubt    = 30 * time.Second
)

// fits tells whether the member may have the answer to q.
func (m *peer) fits(q Query, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := q.To - q.From + 1
	switch {
	case m.head > 0 && m.head < q.To, m.pruned > 0 && q.From <= m.pruned:
		return false
	case now.Before(m.noLogs), now.Before(m.doubted):
		return false
	}
	return m.refused == 0 || size < m.refused || now.Sub(m.when) > forgetRefusal
}

// learn remembers why q was not answered.
func (m *peer) learn(q Query, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	switch jsonrpc.Judge(err).Fault {
	case jsonrpc.FaultBehind:
		if m.head >= q.To { // it claimed to have the block
			m.doubted = now.Add(forgetDoubt)
		}
		m.head = min(m.head, q.To-1)
	case jsonrpc.FaultPruned:
		m.pruned = max(m.pruned, q.From)
	case jsonrpc.FaultNoMethod:
		m.noLogs = now.Add(forgetNoMethod)
	case jsonrpc.FaultRange:
		m.refused, m.when = q.To-q.From+1, now
	}
}

// answered remembers what an answer to q proves.
func (m *peer) answered(q Query) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head, m.shown = max(m.head, q.To), max(m.shown, q.To)
	if q.To-q.From+1 >= m.refused {
		m.refused = 0
	}
}

// sees remembers the head the member reports. A lower one than before is taken
// over too: the endpoint may have changed its backend.
func (m *peer) sees(head uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head = head
}

func (m *peer) doubt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubted = time.Now().Add(forgetDoubt)
}

// state is what ordering needs of a member.
func (m *peer) state(now time.Time) (head uint64, doubted bool, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, now.Before(m.doubted), now.Sub(m.looked)
}

// look asks for the head, and checks that the endpoint serves the chain and has the
// block. One that serves another is excluded; its error is repute.ErrConflict.
func (m *peer) look(ctx context.Context, chainID uint64) (Heads, error) {
	m.mu.Lock()
	m.looked = time.Now()
	m.mu.Unlock()
	h, err := m.Heads(ctx)
	if err == nil {
		err = m.belongs(h.ChainID, chainID)
	}
	if err == nil {
		m.sees(h.Latest.Number)
		err = m.vouch(ctx, h.Latest.Number)
	}
	h = h.Limited()
	m.says(h, err)
	return h, err
}

// belongs excludes an endpoint of another chain and readmits one that has come
// back to its own.
func (m *peer) belongs(is, want uint64) error {
	if is != want {
		reason := fmt.Sprintf("serves chain %d, configured is %d", is, want)
		m.limiter.Exclude(reason)
		return repute.Conflict("endpoint %s %s: give an endpoint of chain %d, or name chain %d", m.name, reason, want, is)
	}
	m.limiter.Exclude("")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proven = time.Now()
	return nil
}

// chainAgain asks an excluded endpoint, past its limiter, which chain it serves now.
func (m *peer) chainAgain(ctx context.Context, chainID uint64) {
	ctx, cancel := context.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	var id *hexutil.Uint64
	batch := []rpc.BatchElem{{Method: "eth_chainId", Result: &id}}
	if _, err := m.send(ctx, batch); err == nil && batch[0].Error == nil && id != nil {
		_ = m.belongs(uint64(*id), chainID) // still excluded
	}
}

// isProven tells whether the endpoint has lately been seen to serve the chain.
func (m *peer) isProven(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.proven) < reproveAfter
}

// report is the endpoint's health as status shows it.
func (m *peer) report(chainID uint64, owner string) repute.Endpoint {
	e := repute.Endpoint{ChainID: chainID, Name: m.name, Kind: m.kind, Owner: owner}
	m.limiter.Report(&e)
	e.Head, _, _ = m.state(time.Now())
	return e
}

// nameApart gives endpoints that share a host different names: with the kind where that
// tells them apart, else with a hash too. What else differs is path, query or key, and
// must not be shown.
func nameApart(nodes []*Node) {
	hosts, kinds := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		hosts[n.host]++
		kinds[n.kind+n.host]++
	}
	for _, n := range nodes {
		if hosts[n.host] == 1 {
			continue
		}
		if hosts[n.host] > kinds[n.kind+n.host] {
			n.name = n.host + " (" + n.kind + ")"
		}
		if kinds[n.kind+n.host] > 1 {
			sum := sha256.Sum256([]byte(n.url))
			n.name += "#" + hex.EncodeToString(sum[:3])
		}
	}
}
