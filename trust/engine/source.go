package engine

import (
	"context"
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/flow"
)

// EvidenceOf converts stored data about an agent into evidence, without Related.
func EvidenceOf(s trustdb.Subject, w *flow.Weights, scales *trust.Scales) trust.Evidence {
	e := trust.Evidence{Agent: s.Agent, Block: s.Block, Owner: s.Owner, Weights: w, Scales: scales,
		Rows: make([]trust.Row, len(s.Rows))}
	e.Wallet, e.Tenures = s.Wallet, tenuresOf(s.Holders)
	e.Since = trust.PresentSince(e.Tenures, w.Graph())
	events := make([]trust.OwnerEvent, len(s.Events))
	for i, event := range s.Events {
		events[i] = trust.OwnerEvent(event)
	}
	e.Registrar, e.Actions = trust.ReadActions(events)
	if e.Registrar == (common.Address{}) && len(s.Holders) > 0 {
		e.Registrar = s.Holders[0].Owner
	}
	if s.Wallet != (common.Address{}) {
		e.Self = append(e.Self, s.Wallet)
	}
	e.Self = append(e.Self, trust.MovedFrom(e.Tenures, e.Since)...)
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

// unix is a time in seconds since 1970, 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// rowOf keeps a tag that was too long to be read from being taken for the empty one.
func rowOf(r trustdb.Row) trust.Row {
	if r.Other {
		r.Tag1 = trust.UnreadTag
	}
	row := trust.Row{Block: r.Block, LogIndex: r.LogIndex, Time: unix(r.Time), Rater: r.Rater, Via: r.Via, Index: r.Index,
		Validation: r.Validation,
		Amount:     r.Amount, Tag1: r.Tag1, Tag2: r.Tag2, Content: r.Content}
	if r.Payment != nil {
		row.Paid, row.Payee, row.PaidAt = trust.Dollars(r.Payment.Paid), r.Payment.To, unix(r.Payment.Time)
	}
	return row
}

// GraphOf holds the inputs of a graph besides events and parameters.
type GraphOf struct {
	ChainID     uint64
	Block       repute.Block // the view; ages run to its time
	Roots       []flow.Root
	Links       []trust.Link
	Validations []common.Address // contracts whose answers count
	Scales      []trust.FileScale
}

// ReadGraph builds the graph of a chain as of a block, through which trust flows. The reader has the scales of its
// raters, and returns Coverage.
func ReadGraph(ctx context.Context, db *store.DB, of GraphOf, p *trust.Params) (*flow.Graph, *trust.GraphReader, error) {
	r := trust.NewGraphReader(of.Block, of.Roots, of.Links, p)
	r.StateScales(of.Scales)
	party := func(p trustdb.Party) {
		r.Agent(p.TokenID, p.Since, p.Owner, p.Wallet)
		for tenures := tenuresOf(p.Holders); len(tenures) > 1; tenures = tenures[1:] {
			r.Former(p.TokenID, tenures[0])
		}
	}
	edge := func(e trustdb.Edge) { r.Rating(e.TokenID, rowOf(e.Row)) }
	if err := trustdb.ReadGraph(ctx, db, of.ChainID, of.Block.Number, of.Validations, party, edge); err != nil {
		return nil, nil, err
	}
	return r.Build(), r, nil
}

// tenuresOf converts owners and wallets into tenures. Ratings from the block of a transfer
// belong to the former owner: the new one cannot have used the agent yet.
func tenuresOf(holders []trustdb.Holder) (out []trust.Tenure) {
	for i, h := range holders {
		t := trust.Tenure{From: h.From + 1, To: math.MaxUint64, Began: unix(h.Time), Owner: h.Owner, Wallet: h.Wallet}
		if i == 0 {
			t.From = h.From
		}
		if i+1 < len(holders) {
			t.To, t.Ended = holders[i+1].From, unix(holders[i+1].Time)
		}
		out = append(out, t)
	}
	return out
}
