package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/indexer/verify/missing"
	"repute/indexer/verify/witness"
	"repute/store/verifydb"
)

// judgment compares the stored logs of a block with what witnesses show of it. Nothing is
// repaired without one.
type judgment struct {
	block   node.Sealed
	logs    []types.Log // of followed contracts, as the block has them
	absent  []types.Log // in the block and not stored
	extra   []types.Log // stored, and not in the block
	claimed []types.Log // not stored, and shown by a single witness that cannot prove it
	proven  bool        // by the receipts' root
	agreed  bool        // two witnesses of different hosts show what is stored
	bare    bool        // witnesses of different hosts show no logs, and it needs receipts
	rooted  bool        // the receipts have the root that came with them
	why     error       // why a witness gave no receipts, nil when all gave some or it is proven
}

// sure reports whether the judgment rests on more than one host.
func (j *judgment) sure() bool { return j.proven || j.agreed }

// settled reports whether exactly the logs of the block are stored.
func (j judgment) settled() bool {
	return len(j.absent) == 0 && len(j.extra) == 0 && len(j.claimed) == 0
}

// judge compares the stored logs of a block with what the witnesses show of it.
// The receipts of one witness are enough where they are proven. Where no receipts can be
// proven, a log counts that two hosts show, or the only host there is. It is an
// error when the stored block is another one, and when the witnesses do not agree
// which block is the chain's.
func (v *Verifier) judge(ctx context.Context, number uint64) (judgment, error) {
	stored, _, err := verifydb.Logs(ctx, v.db, v.chain.ID, repute.BlockRange{From: number, To: number}, 1)
	if err != nil {
		return judgment{}, err
	}
	known, err := verifydb.Headers(ctx, v.db, v.chain.ID, []uint64{number})
	if err != nil {
		return judgment{}, err
	}
	h := inquiry{v: v, nodes: v.witnesses.Nodes(), number: number, block: known[number], stored: stored}
	return h.judge(ctx)
}

// inquiry asks the witnesses about one block.
type inquiry struct {
	v      *Verifier
	nodes  []*node.Node
	number uint64
	block  repute.Block // the stored block; without hash when there is none
	stored []types.Log
	agreed *node.Sealed // the block of the chain, after the witnesses were asked for it
	why    error        // why the last witness without receipts returned none
}

// judge compares the receipts of one witness after another with the stored logs until the result is
// certain.
func (h *inquiry) judge(ctx context.Context) (judgment, error) {
	block := h.block
	if block.Hash == (common.Hash{}) {
		agreed, err := h.canonical(ctx)
		if err != nil {
			return judgment{}, err
		}
		block = agreed.Block
	}
	var words []answer
	agreeing := map[string]bool{} // hosts whose logs equal the stored ones
	last := witness.ErrNone
	for _, n := range h.nodes {
		e, why, err := h.v.evidence(ctx, n, block)
		if why != nil {
			h.why = why
		}
		if err != nil {
			if last = err; ctx.Err() != nil {
				return judgment{}, err
			}
			continue
		}
		j := h.v.weigh(e, h.stored)
		switch {
		case j.settled() && j.proven:
			return j, nil
		case j.settled():
			words, agreeing[n.Host()] = append(words, answer{e, n.Host()}), true
			continue
		}
		if err := h.agrees(ctx, &e); err != nil {
			last = err
			continue
		}
		if e.Proven {
			j.block = e.Sealed
			return j, nil
		}
		words = append(words, answer{e, n.Host()})
	}
	if len(words) == 0 {
		return judgment{}, last
	}
	j := h.unproven(words)
	j.agreed, j.why = len(agreeing) > 1 && j.settled(), h.why
	if !j.agreed || len(h.stored) > 0 {
		return j, nil
	}
	header, err := h.canonical(ctx)
	if err != nil {
		return judgment{}, err
	}
	if j.bare = h.v.needsReceipts(header, nil); j.bare {
		j.agreed = false
	}
	return j, nil
}

// agrees returns an error unless evidence that would change something is of the block that the
// witnesses show.
func (h *inquiry) agrees(ctx context.Context, e *node.Evidence) error {
	c, err := h.canonical(ctx)
	switch {
	case err != nil:
		return err
	case c.Hash != e.Hash:
		return fmt.Errorf("block %d: %w", h.number, node.ErrMoved)
	case e.Txs != nil && witness.Hosts(h.nodes) > 1 && !slices.Equal(e.Txs, c.Txs):
		return &jsonrpc.AnswerError{What: fmt.Sprintf("other transactions in block %d than the others have", h.number)}
	}
	if !e.Proven {
		e.Block = c.Block
	}
	return nil
}

// canonical returns the header of the block that witnesses of two hosts show, or, of a block whose
// hash is stored, the only host that answers. It is an error when they show different ones. The
// only host that there is counts alone.
func (h *inquiry) canonical(ctx context.Context) (*node.Sealed, error) {
	if h.agreed != nil {
		return h.agreed, nil
	}
	var shown []node.Sealed
	var by []string // hosts
	last := witness.ErrNone
	for _, n := range witness.Apart(h.nodes)[:min(len(h.nodes), heard)] {
		s, err := h.v.headerOf(ctx, n, h.number)
		if err != nil {
			if last = err; ctx.Err() != nil {
				return nil, err
			}
			continue
		}
		switch same := slices.IndexFunc(shown, func(o node.Sealed) bool { return witness.SameHeader(&o, &s) }); {
		case same < 0:
			shown, by = append(shown, s), append(by, n.Host())
		case by[same] != n.Host():
			if h.agreed = &s; !s.Recomputed { // a liar may have altered the bloom, which is not compared
				h.agreed = &shown[same]
			}
			return h.agreed, nil
		}
	}
	switch {
	case len(shown) == 0:
		return nil, last
	case len(shown) > 1:
		return nil, fmt.Errorf("block %d: %w", h.number, witness.ErrDisagree)
	case h.block.Hash == (common.Hash{}) && witness.Hosts(h.nodes) > 1:
		// No stored event names the block, so that a single host could invent it.
		return nil, fmt.Errorf("only one host shows block %d: %w", h.number, last)
	}
	h.agreed = &shown[0]
	return h.agreed, nil
}

// heard is the largest number of witnesses that are asked which block is on the chain, and for the
// logs of a block without proven receipts.
const heard = 3

// headerTimeout bounds one call for a header.
const headerTimeout = time.Minute

// receiptsTimeout bounds the calls for one block's receipts, which may have to be asked for one
// by one, at the rate that is allowed.
const receiptsTimeout = 10 * time.Minute

// headerOf asks one witness for a header.
func (v *Verifier) headerOf(ctx context.Context, n *node.Node, number uint64) (node.Sealed, error) {
	if err := v.witnesses.Spend(ctx, 1); err != nil {
		return node.Sealed{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, headerTimeout)
	defer cancel()
	headers, err := n.SealedBlocks(ctx, []uint64{number})
	if err != nil {
		return node.Sealed{}, err
	}
	return headers[0], nil
}

// evidence asks one witness for the receipts of a block, or else for its logs by the block's
// hash, which prove nothing: why is then the reason for which it gave no receipts.
func (v *Verifier) evidence(ctx context.Context, n *node.Node, block repute.Block) (e node.Evidence, why, err error) {
	ctx, cancel := context.WithTimeout(ctx, receiptsTimeout)
	defer cancel()
	e, err = n.Receipts(ctx, block, v.witnesses.Spend)
	if err == nil || errors.Is(err, node.ErrMoved) {
		return e, nil, err
	}
	if err := v.witnesses.Spend(ctx, 1); err != nil {
		return node.Evidence{}, nil, err
	}
	logs, failed := n.LogsOf(ctx, []common.Hash{block.Hash}, v.decoder.Addresses)
	if failed != nil || logs[0] == nil {
		return node.Evidence{}, nil, err
	}
	for i := range logs[0] {
		logs[0][i].BlockNumber = block.Number
	}
	return node.Evidence{Sealed: node.Sealed{Block: block}, Logs: logs[0]}, err, nil
}

// answer is the evidence that a witness gave, and its host.
type answer struct {
	node.Evidence
	host string
}

// unproven combines the evidence of witnesses of which none can prove it. A single host is
// believed, as it is when the chain is followed: everything that any of its ports shows.
func (h *inquiry) unproven(words []answer) judgment {
	anyone, shared := words[0].Evidence, words[0].Evidence
	anyone.Logs, shared.Logs = nil, nil
	for i, w := range words {
		for _, l := range w.Logs {
			switch by := showing(words[:i], &l); {
			case len(by) == 0:
				anyone.Logs = append(anyone.Logs, l)
			case len(by) == 1 && by[0] != w.host:
				shared.Logs = append(shared.Logs, l)
			}
		}
	}
	j := h.v.weigh(anyone, h.stored)
	if witness.Hosts(h.nodes) == 1 {
		return j
	}
	j.claimed, j.absent = j.absent, h.v.weigh(shared, h.stored).absent
	j.claimed = slices.DeleteFunc(j.claimed, func(l types.Log) bool {
		return slices.ContainsFunc(j.absent, func(o types.Log) bool { return o.Index == l.Index })
	})
	if h.agreed != nil {
		j.block = *h.agreed
	}
	if !slices.ContainsFunc(words, func(w answer) bool { return w.host != words[0].host }) {
		j.extra = nil // one host among several is not enough to delete a stored log either
	}
	return j
}

// showing returns the hosts that show a log.
func showing(words []answer, l *types.Log) (by []string) {
	for i := range words {
		shows := slices.ContainsFunc(words[i].Logs, func(o types.Log) bool {
			return o.Index == l.Index &&
				missing.SameContent(&o, l)
		})
		if shows && !slices.Contains(by, words[i].host) {
			by = append(by, words[i].host)
		}
	}
	return by
}

// weigh compares a block's evidence with what is stored of it.
func (v *Verifier) weigh(e node.Evidence, stored []types.Log) judgment {
	j := judgment{block: e.Sealed, proven: e.Proven, rooted: e.Rooted}
	byIndex := make(map[uint]*types.Log, len(stored))
	for i := range stored {
		byIndex[stored[i].Index] = &stored[i]
	}
	for _, l := range e.Logs {
		s := byIndex[l.Index]
		if s != nil && missing.SameContent(s, &l) {
			delete(byIndex, l.Index)
		}
		if _, ours := v.decoder.Decode(l); !ours {
			continue
		}
		if j.logs = append(j.logs, l); s == nil {
			j.absent = append(j.absent, l)
		}
	}
	for i := range stored {
		l := &stored[i]
		if byIndex[l.Index] != nil && slices.Contains(v.decoder.Addresses, l.Address) {
			j.extra = append(j.extra, *l)
		}
	}
	return j
}

// judgePlaces judges the blocks of logs that are not stored, at most so many that were not looked at before, and
// returns those in which logs are missing or claimed to be. The error is that of a block that could not be judged.
func (v *Verifier) judgePlaces(ctx context.Context, logs []types.Log, most int,
	looked map[uint64]bool) (out []judgment, err error) {
	unknown, err := verifydb.UnknownLogs(ctx, v.db, v.chain.ID, logs)
	if err != nil {
		return nil, err
	}
	for i := range unknown {
		number := unknown[i].BlockNumber
		if looked[number] || most == 0 {
			continue
		}
		looked[number] = true
		most--
		j, failed := v.judge(ctx, number)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case failed != nil:
			err = failed
		case len(j.absent) > 0 || len(j.claimed) > 0:
			out = append(out, j)
		}
	}
	return out, err
}

// lacking returns the judgments that show missing logs.
func lacking(all []judgment) []judgment {
	return slices.DeleteFunc(all, func(j judgment) bool { return len(j.absent) == 0 })
}
