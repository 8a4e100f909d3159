package trust

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
)

// EvidenceOf puts what is stored about an agent into the terms of a score. Kin is left
// to the caller.
func EvidenceOf(s store.TrustSubject, w *Weights) Evidence {
	e := Evidence{Agent: s.Agent, Block: s.Block, Owner: s.Owner, Weights: w,
		Held: unix(s.Held), Rows: make([]Row, len(s.Rows))}
	e.Wallet, e.Tenures, e.Registrar = s.Wallet, tenuresOf(s.Holders), s.Registrar
	e.Since = since(e.Tenures)
	if e.Registrar == (common.Address{}) && len(s.Holders) > 0 {
		e.Registrar = s.Holders[0].Owner
	}
	for _, a := range s.Acts {
		e.Acts = append(e.Acts, Act(a))
	}
	if s.Wallet != (common.Address{}) {
		e.Self = append(e.Self, s.Wallet)
	}
	for _, a := range append([]common.Address{s.Approved}, s.Operators...) {
		if a != (common.Address{}) {
			e.Named = append(e.Named, a)
		}
	}
	for i, r := range s.Rows {
		e.Rows[i] = rowOf(r)
	}
	return e
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// rowOf keeps a tag that was too long to be read from being taken for the empty one.
func rowOf(r store.TrustRow) Row {
	if r.Other {
		r.Tag1 = otherTag
	}
	row := Row{Block: r.Block, LogIndex: r.LogIndex, Time: unix(r.Time), Rater: r.Rater, Index: r.Index, Validation: r.Validation,
		Amount: r.Amount, Tag1: r.Tag1, Tag2: r.Tag2, Content: r.Content}
	if r.Payment != nil {
		row.Paid = dollars(r.Payment.Paid)
	}
	return row
}

// dollars is an amount of US dollars as a number.
func dollars(m repute.Micros) Fixed { return ratio(int64(min(m, repute.MaxPaid)), 1e6) }

// otherTag is no UTF-8, hence in no table.
const otherTag = "\xff"

// graphSource is what ReadGraph needs of a store.
type graphSource interface {
	TrustGraph(ctx context.Context, chainID, block uint64, validations []common.Address, party func(store.TrustParty), edge func(store.TrustEdge)) error
}

// Link says that two addresses are one party, by evidence from outside the chain.
type Link struct{ A, B common.Address }

// GraphOf says what a graph follows from besides events and parameters.
type GraphOf struct {
	ChainID     uint64
	Block       repute.Block // the view; ages run to its time
	Roots       []Root
	Links       []Link
	Validations []common.Address // contracts whose answers count
}

// ReadGraph builds the graph of who vouches for whom on a chain as of a block: an
// edge goes from whoever rated an agent well to the agent's owner, as strong as its opinion
// and the fresher the stronger. An agent's owner and its verified wallet, who both signed
// for that, are one party. What was said before the owner got the agent does not count.
// Roots are known to the graph even when nothing else is known of them.
func ReadGraph(ctx context.Context, db graphSource, of GraphOf, p *Params) (*Graph, error) {
	r := &graphReader{b: NewGraphBuilder(), p: p, at: of.Block.Time.Unix(), agents: map[repute.TokenID]holder{}, said: map[[2]uint32]*saying{}}
	for _, root := range of.Roots {
		r.b.Add(root.Address)
	}
	for _, l := range of.Links {
		r.b.Link(r.b.Add(l.A), r.b.Add(l.B))
	}
	if err := db.TrustGraph(ctx, of.ChainID, of.Block.Number, of.Validations, r.party, r.edge); err != nil {
		return nil, err
	}
	for pair, s := range r.said {
		if value, strength := s.mean(); value > 0 {
			r.b.Vouch(pair[0], pair[1], value.mul(strength))
		}
	}
	return r.b.Build(), nil
}

type graphReader struct {
	b      *GraphBuilder
	p      *Params
	at     int64
	agents map[repute.TokenID]holder
	said   map[[2]uint32]*saying // by rater and holder
}

type holder struct {
	id    uint32
	since uint64
}

func (r *graphReader) party(p store.TrustParty) {
	id := r.b.Add(p.Owner)
	r.agents[p.TokenID] = holder{id, p.Since}
	if p.Wallet != (common.Address{}) {
		r.b.Link(id, r.b.Add(p.Wallet))
	}
}

func (r *graphReader) edge(e store.TrustEdge) {
	of, known := r.agents[e.TokenID]
	if !known || e.Block < of.since {
		return
	}
	row := rowOf(e.TrustRow)
	read, reason := r.p.read(&row, r.at)
	if reason != "" {
		return
	}
	pair := [2]uint32{r.b.Add(row.Rater), of.id}
	r.b.Rates(pair[0])
	if r.said[pair] == nil {
		r.said[pair] = &saying{}
	}
	r.said[pair].add(r.p, &read, r.at)
}
