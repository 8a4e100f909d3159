package archive

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/node"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

// A snapshot is JSON, one value per line: a header, every log of a chain as eth_getLogs returns it,
// in order, and the count of logs. Equal indexes write equal bytes. Other readers of recorded logs
// can read it too.

// snapshotFormat names the format and its version.
const snapshotFormat = "repute-events/1"

// snapshotHeader is the first line. Format is its first member, so that the first bytes identify
// the format.
type snapshotHeader struct {
	Format      string            `json:"format"`
	ChainID     uint64            `json:"chainId"`
	Name        string            `json:"name"`
	Identity    common.Address    `json:"identity"`
	Reputation  common.Address    `json:"reputation"`
	Validations []common.Address  `json:"validations"`
	Gateways    []snapshotGateway `json:"gateways,omitempty"`
	StartBlock  uint64            `json:"startBlock"`
	BlockRange  snapshotRange     `json:"blockRange"`
	Covered     []snapshotRange   `json:"covered"`
	Last        snapshotLastBlock `json:"last"`
	Gaps        []snapshotGap     `json:"gaps,omitempty"`
}

// snapshotGap is an event known to be missing from the logs that follow.
type snapshotGap struct {
	Kind    repute.EventKind `json:"kind"`
	Subject string           `json:"subject"`
	Agent   *repute.TokenID  `json:"agent,omitempty"`
	Client  *common.Address  `json:"client,omitempty"`
	Blocks  snapshotRange    `json:"blocks"`
	Reason  string           `json:"reason"`
}

// gap returns the gap in the form that the store keeps.
func (g snapshotGap) gap() chaindb.Gap {
	return chaindb.Gap{Subject: g.Subject, Gap: repute.Gap{Kind: g.Kind, Agent: g.Agent, Client: g.Client,
		Blocks: repute.BlockRange(g.Blocks), Reason: g.Reason}}
}

type snapshotRange struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// snapshotLastBlock describes block BlockRange.To; a zero hash or time is unknown.
type snapshotLastBlock struct {
	Hash common.Hash `json:"hash"`
	Time int64       `json:"time"` // Unix seconds
}

// snapshotEnd is the last line. A snapshot without it is truncated.
type snapshotEnd struct {
	End *struct {
		Events int `json:"events"`
	} `json:"end"`
}

// headerOf returns the first line of a snapshot file: the chain, the blocks it covers, and the
// gaps that an importer must know of.
func headerOf(s importdb.Snapshot) snapshotHeader {
	h := snapshotHeader{Format: snapshotFormat, ChainID: s.Chain.ID, Name: s.Chain.Name, Identity: s.Chain.Identity,
		Reputation: s.Chain.Reputation, Validations: append([]common.Address{}, s.Chain.Validations...),
		Gateways: snapshotGateways(s.Chain.Gateways), StartBlock: s.Chain.StartBlock,
		BlockRange: snapshotRange(s.Range), Covered: []snapshotRange{}, Last: snapshotLastBlock{Hash: s.Last.Hash}}
	if !s.Last.Time.IsZero() {
		h.Last.Time = s.Last.Time.Unix()
	}
	for _, r := range s.Covered {
		h.Covered = append(h.Covered, snapshotRange(r))
	}
	for _, g := range s.Gaps {
		h.Gaps = append(h.Gaps, snapshotGap{Kind: g.Kind, Subject: g.Subject, Agent: g.Agent, Client: g.Client,
			Blocks: snapshotRange(g.Blocks), Reason: g.Reason})
	}
	return h
}

// snapshotGateway is a feedback gateway that the writer listed.
type snapshotGateway struct {
	Address common.Address `json:"address"`
	From    uint64         `json:"from,omitempty"`
}

// snapshotGateways returns gateways in the form of the header.
func snapshotGateways(list []repute.WatchedContract) (out []snapshotGateway) {
	for _, g := range list {
		out = append(out, snapshotGateway(g))
	}
	return out
}

// chain returns the chain as the writer of the snapshot followed it.
func (h snapshotHeader) chain() repute.Chain {
	var gateways []repute.WatchedContract
	for _, g := range h.Gateways {
		gateways = append(gateways, repute.WatchedContract(g))
	}
	return repute.Chain{Gateways: gateways, ID: h.ChainID, Name: h.Name, Identity: h.Identity, Reputation: h.Reputation,
		Validations: h.Validations, StartBlock: h.StartBlock}
}

// last returns the newest block of the snapshot. Its time is zero when the exporter did not know
// it.
func (h snapshotHeader) last() repute.Block {
	b := repute.Block{Number: h.BlockRange.To, Hash: h.Last.Hash}
	if h.Last.Time > 0 {
		b.Time = time.Unix(h.Last.Time, 0).UTC()
	}
	return b
}

// check returns the error text for an invalid header, "" for a valid one.
func (h snapshotHeader) check() string {
	ordered := func(r snapshotRange) bool { return r.From <= r.To && r.To < blocksEnd }
	switch {
	case h.Format != snapshotFormat:
		return "format is not " + snapshotFormat
	case h.ChainID == 0 || h.ChainID > 1<<63-1:
		return "chainId is not a chain id"
	case len(h.Name) > 100 || strings.ContainsRune(h.Name, 0):
		return "name is too long or not text"
	case h.Identity == (common.Address{}) || h.Reputation == (common.Address{}):
		return "identity or reputation is missing"
	case !ordered(h.BlockRange):
		return "blockRange is no range"
	case h.Last.Time >= node.TimesEnd:
		return "last has a time after the year 9999"
	}
	for _, r := range h.Covered {
		if !ordered(r) || r.From < h.BlockRange.From || r.To > h.BlockRange.To {
			return "covered is no range within blockRange"
		}
	}
	for _, g := range h.Gaps {
		if g.Kind < repute.KindTransfer || g.Kind > repute.KindTicketConsumed || g.Subject == "" || !ordered(g.Blocks) {
			return "gaps holds one without kind, subject or blocks"
		}
	}
	return ""
}

// ExportResult describes the written snapshot.
type ExportResult struct {
	ChainID uint64
	Blocks  repute.BlockRange
	Events  int
	// Missing counts the gaps and the events that wait for a missing one; they are part of the
	// snapshot.
	Missing int64
	// Whole reports whether nothing between the chain's start and the last block is omitted or
	// known to be missing, and that block's hash is known. serve can resume an import of such a
	// snapshot.
	Whole bool
	// Named reports whether the hash of the last block is known. Without it serve cannot resume.
	Named bool
}

// Export writes a snapshot of a chain's stored events. blocks and errors are those of
// eventdb.ReadSnapshot.
func Export(ctx context.Context, db *store.DB, chainID uint64, blocks repute.BlockRange, w io.Writer) (ExportResult,
	error) {
	result := ExportResult{ChainID: chainID}
	out := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(out)
	begin := func(s importdb.Snapshot) error {
		result.Blocks = s.Range
		result.Missing = int64(len(s.Gaps)) + s.Waiting
		result.Named = s.Last.Hash != (common.Hash{})
		result.Whole = result.Missing == 0 && result.Named && len(s.Covered) == 1 &&
			s.Covered[0].From <= s.Chain.StartBlock && s.Covered[0].To == s.Range.To
		return enc.Encode(headerOf(s))
	}
	each := func(l *types.Log) error {
		result.Events++
		return enc.Encode(l)
	}
	if err := importdb.ReadSnapshot(ctx, db, chainID, blocks, begin, each); err != nil {
		return result, err
	}
	end := snapshotEnd{End: &struct {
		Events int `json:"events"`
	}{result.Events}}
	if err := enc.Encode(end); err != nil {
		return result, err
	}
	return result, out.Flush()
}
