package historydb

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Kind is what changed of an agent.
type Kind string

// Kinds of changes.
const (
	KindOwner    Kind = "owner"
	KindWallet   Kind = "wallet"
	KindApproved Kind = "approved" // the one address that the ERC-721 approval names
	KindURI      Kind = "uri"
	KindMetadata Kind = "metadata" // one key
	KindOperator Kind = "operator" // one address that may act for the agent, because its owner lets it act for all
)

// Kinds returns all kinds in the order of the changes of one block.
func Kinds() []Kind {
	return []Kind{KindOwner, KindWallet, KindApproved, KindURI, KindMetadata, KindOperator}
}

// rank returns the place of a kind in Kinds, from 1; 0 for no kind.
func (k Kind) rank() int { return 1 + slices.Index(Kinds(), k) }

// Change is one change of an agent. The histories are by block: of several changes of one value in a block, the last
// one counts.
type Change struct {
	Agent repute.AgentID
	Kind  Kind
	// Key is the key of metadata as a Value, nil for other kinds.
	Key *Value
	// Old and New are nil for nothing. A key of metadata that is set to nothing has an empty New.
	Old, New *Value
	// At is the log that made the change. Its hash is zero when no such log is stored.
	At repute.Point

	pos changePos
}

// Value is what an agent had or has: an address of 20 bytes, a URI, a key or a value of metadata.
type Value struct {
	Bytes []byte // no more than the first column.MaxListed bytes
	Size  int64  // bytes of the whole
	// Partial says that Bytes is less than the whole. Denied says that the operator does not show the document of the
	// URI, so that Bytes lacks it.
	Partial, Denied bool
}

// Filter selects and orders the changes of an agent.
type Filter struct {
	Kinds       []Kind // nil for all
	OldestFirst bool
	At          repute.At
	After       string // Next of the page before, with the same filter
	Limit       int    // 1..MaxPage
}

// changePos is the position of a change in its agent's history.
type changePos struct {
	Block int64 `json:"b"`
	Rank  int64 `json:"k"`
	// Subject is what tells changes of one kind and block apart: the sha256 of a key, or an operator.
	Subject []byte `json:"s"`
}

// start returns the position before every change.
func (f Filter) start() changePos {
	if f.OldestFirst {
		return changePos{Block: -1, Subject: []byte{}}
	}
	return changePos{Block: chaindb.Everything, Rank: int64(len(Kinds()) + 1), Subject: []byte{}}
}

// check returns the ranks of the wanted kinds, and what is wrong with the filter.
func (f Filter) check() (ranks []int, err error) {
	kinds := f.Kinds
	if kinds == nil {
		kinds = Kinds()
	}
	for _, k := range kinds {
		if k.rank() == 0 {
			return nil, repute.Invalid("kind", fmt.Sprintf("%.50q is no kind of change", string(k)), kindNames())
		}
		ranks = append(ranks, k.rank())
	}
	slices.Sort(ranks)
	return slices.Compact(ranks), store.CheckLimit(f.Limit)
}

// kindNames lists the kinds for errors.
func kindNames() string {
	names := make([]string, len(Kinds()))
	for i, k := range Kinds() {
		names[i] = string(k)
	}
	return "of " + strings.Join(names, ", ")
}

// History returns the changes of an agent up to a block. repute.ErrNotFound as in query.Agent.
func History(ctx context.Context, db *store.DB, id repute.AgentID, f Filter) (page store.Page[Change], err error) {
	ranks, err := f.check()
	if err != nil {
		return page, err
	}
	question, from, err := store.BeginPage(f.After, f.start(), "history", id.ChainID, id.TokenID, ranks, f.OldestFirst,
		f.At)
	if err != nil {
		return page, err
	}
	err = chaindb.ViewAgent(ctx, db, "read history", id, f.At, func(ctx context.Context, s chaindb.Subject) error {
		page.AsOf = []repute.AsOf{s.AsOf}
		items, err := readChanges(ctx, s.Tx, []repute.AgentID{s.ID}, s.Block, from, ranks, f.OldestFirst, f.Limit+1)
		if err != nil {
			return err
		}
		page.Items, page.Next, err = store.Cut(items, f.Limit, question, func(c Change) changePos { return c.pos })
		return err
	})
	return page, err
}

// HistoryByAgents returns the first changes of each agent at the newest block. Agents without any are absent. At and
// After of the filter are not used.
func HistoryByAgents(ctx context.Context, db *store.DB, ids []repute.AgentID,
	f Filter) (out map[column.AgentKey]store.FirstRows[Change], err error) {
	ranks, err := f.check()
	if err != nil {
		return nil, err
	}
	err = chaindb.View(ctx, db, "read histories", func(ctx context.Context, tx pgx.Tx) error {
		items, err := readChanges(ctx, tx, ids, chaindb.Everything, f.start(), ranks, f.OldestFirst, f.Limit+1)
		out = store.FirstRowsOf(items, f.Limit, func(c Change) column.AgentKey { return column.KeyOf(c.Agent) })
		return err
	})
	return out, err
}

// readChanges reads up to limit changes of each agent after a position.
func readChanges(ctx context.Context, tx pgx.Tx, ids []repute.AgentID, block int64, from changePos, ranks []int,
	oldestFirst bool, limit int) ([]Change, error) {
	chains, tokens := column.KeyColumns(ids)
	empty, wallet := column.SHA256(""), column.Keccak(chaindb.WalletKey)
	rows, _ := tx.Query(ctx, historySQL(oldestFirst), chains, tokens, block, from.Block, from.Rank,
		column.OrEmpty(from.Subject), limit, ranks, empty[:], wallet[:])
	return pgx.CollectRows(rows, scanChange)
}

// scanChange reads a row of historySQL.
func scanChange(row pgx.CollectableRow) (c Change, err error) {
	var key, was, now valueRow
	var rank int
	var log *int64
	err = row.Scan(&c.Agent.ChainID, (*column.Address)(&c.Agent.Registry), (*column.TokenNum)(&c.Agent.TokenID), &rank,
		&c.pos.Subject, &key.bytes, &key.size, &was.bytes, &was.size, &was.denied, &now.bytes, &now.size, &now.denied,
		&c.pos.Block, &log, (*column.Hash)(&c.At.TxHash), (*column.Time)(&c.At.Time))
	if err != nil {
		return c, err
	}
	c.Kind, c.pos.Rank = Kinds()[rank-1], int64(rank)
	c.Key, c.Old, c.New = key.value(), was.value(), now.value()
	if c.Kind != KindMetadata {
		c.Old, c.New = c.Old.orNothing(), c.New.orNothing()
	}
	c.At.Block = uint64(c.pos.Block)
	if log != nil {
		c.At.LogIndex = uint64(*log)
	}
	return c, nil
}

// valueRow receives a Value.
type valueRow struct {
	bytes  []byte
	size   *int64
	denied bool
}

// value returns the value, nil for null.
func (r valueRow) value() *Value {
	if r.size == nil {
		return nil
	}
	v := &Value{Size: *r.size, Denied: r.denied}
	v.Bytes = column.Head(r.bytes, column.MaxListed, &v.Partial)
	if r.denied {
		v.Bytes = []byte(column.WithoutContent(string(v.Bytes)))
	}
	return v
}

// orNothing returns nil for an empty value.
func (v *Value) orNothing() *Value {
	if v == nil || v.Size == 0 {
		return nil
	}
	return v
}
