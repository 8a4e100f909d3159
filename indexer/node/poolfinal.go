package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"repute/indexer/node/jsonrpc"
)

const (
	// finalityReportLifetime is how long a member's last answer about finality is valid. It is also how long
	// the pool waits for a member that does not answer before it decides without it.
	finalityReportLifetime = time.Minute
	// maxUnshownDistance is how many blocks a reported head may be above the blocks that the endpoint has
	// returned before it must return one near the head.
	maxUnshownDistance = 64
	// shownBelowHead is how far below the head that block is: all backends of one endpoint have it.
	shownBelowHead = 16
	// farBehind is how many blocks below the others' head an endpoint no longer counts for
	// finality.
	farBehind = 256
)

// headReport is a member's last report of the newest blocks of the chain.
type headReport struct {
	heads  Heads
	silent time.Time // since when it does not answer, zero while it does
}

// recordHead records an answer about the head, or that there was none.
func (m *peer) recordHead(h Heads, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.lastHead = headReport{heads: h}
	case m.lastHead.silent.IsZero():
		m.lastHead.silent = time.Now()
	}
}

// finalityReport returns the member's report of finality, and whether the pool should still wait for one.
func (m *peer) finalityReport(now time.Time) (h Heads, waited bool) {
	if m.limiter.Excluded() {
		return Heads{}, false
	}
	failing := m.limiter.Failing()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lastHead.heads.ChainID != 0 && now.Sub(m.lastHead.heads.SeenAt) < finalityReportLifetime {
		return m.lastHead.heads, false
	}
	if failing && m.lastHead.silent.IsZero() {
		m.lastHead.silent = now
	}
	return Heads{}, m.lastHead.silent.IsZero() || now.Sub(m.lastHead.silent) < finalityReportLifetime
}

// checkHeadBlock requests a block near the reported head, if the head is far above every block that the
// member has returned. The reports of a member that does not have it are ignored for a while.
func (m *peer) checkHeadBlock(ctx context.Context, head uint64) error {
	if m.alone || head <= m.proof()+maxUnshownDistance {
		return nil
	}
	_, err := m.Blocks(ctx, []uint64{head - shownBelowHead})
	if err == nil {
		m.recordShown(head)
		return nil
	}
	if ctx.Err() == nil && jsonrpc.Diagnose(err).Fault == jsonrpc.FaultBehind {
		m.doubt()
		m.setHead(m.proof())
	}
	return fmt.Errorf("head %d is not shown: %w", head, err)
}

// proof returns the newest block that the member has returned.
func (m *peer) proof() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shown
}

// recordShown records that the member returned a block.
func (m *peer) recordShown(block uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shown = max(m.shown, block)
}

// confirmFinality replaces the safe and the final block that one endpoint reports by those that endpoints of
// two hosts report, if there are several hosts: a block that is called final too early would stop
// the chain when it is replaced. Nothing is final while a second host may still answer. An endpoint
// far behind the head does not count.
func (p *Pool) confirmFinality(h Heads) Heads {
	if len(p.members) == 1 {
		return h
	}
	now := time.Now()
	latest := h.Latest.Number
	safe, finalized, waiting := map[string]uint64{}, map[string]uint64{}, map[string]bool{}
	for _, m := range p.members {
		report, waited := m.finalityReport(now)
		if waited {
			waiting[m.Host()] = true
		}
		if report.Latest.Number+farBehind < latest {
			continue
		}
		safe[m.Host()] = max(safe[m.Host()], min(report.Safe, latest))
		finalized[m.Host()] = max(finalized[m.Host()], min(report.Finalized, latest))
	}
	h.Safe, h.Finalized = confirmedBlock(safe, waiting), confirmedBlock(finalized, waiting)
	return h
}

// confirmedBlock returns the highest block that two hosts report or exceed. If only one host reports a
// block and no other may still answer, it returns that block. It returns 0 if there is none; a host
// that reports 0 reports no block.
func confirmedBlock(named map[string]uint64, waiting map[string]bool) uint64 {
	var blocks []uint64
	others := maps.Clone(waiting)
	for host, n := range named {
		if n > 0 {
			blocks = append(blocks, n)
			delete(others, host)
		}
	}
	slices.Sort(blocks)
	switch n := len(blocks); {
	case n >= 2:
		return blocks[n-2]
	case n == 1 && len(others) == 0:
		return blocks[0]
	}
	return 0
}
