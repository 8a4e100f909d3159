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

// peer is an endpoint of a Pool, with the facts about it that are not part of its health. Facts
// about missing data or methods expire after a while.
type peer struct {
	*Node

	mu        sync.Mutex
	head      uint64    // newest block it is known to have, 0 when unknown
	requested time.Time // time of the last request for its head
	proven    time.Time // time when it last showed that it serves the pool's chain
	pruned    uint64    // it has no logs from there on downwards
	refused   uint64    // a range of so many blocks was refused,
	when      time.Time // then
	noLogs    time.Time // it does not answer eth_getLogs, until then
	doubted   time.Time // until then its statements about the chain are ignored
	shown     uint64    // newest block it has shown to have
	lastHead  headReport
	alone     bool // it is the only endpoint of the pool
}

// How long a member's faults are remembered.
const (
	forgetRefusal  = time.Minute
	forgetNoMethod = 10 * time.Minute
	forgetDoubt    = 30 * time.Second
)

// fits reports whether the member may have the answer to q, by what it refused or lacked recently.
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

// recordFailure records why q failed, so that the next query of that kind goes to another member.
func (m *peer) recordFailure(q Query, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	switch jsonrpc.Diagnose(err).Fault {
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

// answered records what an answer to q proves about the member.
func (m *peer) answered(q Query) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head, m.shown = max(m.head, q.To), max(m.shown, q.To)
	if q.To-q.From+1 >= m.refused {
		m.refused = 0
	}
}

// setHead records the head that the member reports. A head lower than before is accepted too: the
// endpoint may have changed its backend.
func (m *peer) setHead(head uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.head = head
}

// doubt makes the other members be preferred for a while, after the member named a block that it
// does not have.
func (m *peer) doubt() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubted = time.Now().Add(forgetDoubt)
}

// state returns the facts by which members are ordered.
func (m *peer) state(now time.Time) (head uint64, doubted bool, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.head, now.Before(m.doubted), now.Sub(m.requested)
}

// setRequested records the time of a request for the head.
func (m *peer) setRequested() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requested = time.Now()
}

// refreshHead requests the head and checks that the endpoint serves the chain and has the block. An
// endpoint of another chain is excluded, with repute.ErrConflict.
func (m *peer) refreshHead(ctx context.Context, chainID uint64) (Heads, error) {
	m.setRequested()
	h, err := m.Heads(ctx)
	if err == nil {
		err = m.checkChainID(h.ChainID, chainID)
	}
	if err == nil {
		m.setHead(h.Latest.Number)
		err = m.checkHeadBlock(ctx, h.Latest.Number)
	}
	m.recordHead(h, err)
	return h, err
}

// checkChainID excludes an endpoint of another chain, and readmits one that serves the pool's chain
// again.
func (m *peer) checkChainID(is, want uint64) error {
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

// recheckChain requests the chain id from an excluded endpoint, bypassing its limiter.
func (m *peer) recheckChain(ctx context.Context, chainID uint64) {
	m.setRequested()
	ctx, cancel := context.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	var id *hexutil.Uint64
	batch := []rpc.BatchElem{{Method: "eth_chainId", Result: &id}}
	if _, err := m.send(ctx, batch); err == nil && batch[0].Error == nil && id != nil {
		_ = m.checkChainID(uint64(*id), chainID) // the error means that it is still excluded
	}
}

// isProven reports whether the endpoint has recently shown that it serves the chain.
func (m *peer) isProven(now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.proven) < recheckChainAfter
}

// report returns the health of the endpoint for the status page.
func (m *peer) report(chainID uint64, owner string) repute.Endpoint {
	e := repute.Endpoint{ChainID: chainID, Name: m.name, Kind: m.kind, Owner: owner}
	m.limiter.Report(&e)
	e.Head, _, _ = m.state(time.Now())
	return e
}

// assignNames gives endpoints of one host different names: the host and the kind where that is
// enough, otherwise a hash too. The path, the query and the key MUST NOT appear in a name.
func assignNames(nodes []*Node) {
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
