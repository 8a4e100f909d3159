// Package runtimes reads what runtimes of agents did: those that work with this database from its log, and those
// elsewhere from what they say at their own addresses, which is hostile text.
//
// Read and Receipts ask the database. Ask asks an address that the agent's document names, through the guard of
// documents that its caller passes as Fetch: at most two origins, four seconds each answer. Something that answers
// there is the agent's runtime only if its health names the agent's token and its receipts are of the agent; what it
// says beyond that is a claim, which is bounded and shown as such.
package runtimes

import (
	"context"
	"math/big"

	"repute"
	"repute/api/wire"
	"repute/store"
	"repute/store/agentdb"
)

const (
	// shownRuntimes is how many agents that run here are shown.
	shownRuntimes = 20
	// ShownPaid is how many paid executions of one agent are shown.
	ShownPaid = 20
)

// Runtime is an agent that works with this database.
type Runtime struct {
	Agent  string
	Seen   wire.Time
	Mode   string
	Since  *wire.Time
	Policy *string
	Works  []Work
}

// Work is what an agent did for one capability.
type Work struct {
	Capability         string
	Runs, Failed, Paid wire.Long
	Last               wire.Time
	Revenue, Price     wire.Decimal
	Currency           *string
}

// Read returns the agents that work with a database, and what they did.
func Read(ctx context.Context, db *store.DB) ([]*Runtime, error) {
	list, err := agentdb.Runtimes(ctx, db, shownRuntimes)
	if err != nil {
		return nil, err
	}
	works, err := agentdb.Works(ctx, db, wire.Each(list, func(r agentdb.Runtime) string { return r.Agent }))
	if err != nil {
		return nil, err
	}
	out, by := make([]*Runtime, 0, len(list)), map[string]*Runtime{}
	for _, r := range list {
		one := &Runtime{Agent: r.Agent, Seen: *wire.EncodeTime(r.Seen), Mode: r.Mode, Since: wire.EncodeTime(r.Since),
			Policy: wire.OrNull(r.Policy), Works: []Work{}}
		out, by[r.Agent] = append(out, one), one
	}
	for i := range works {
		one := by[works[i].Agent]
		one.Works = append(one.Works, encodeWork(&works[i]))
	}
	return out, nil
}

// encodeWork writes the work for a capability.
func encodeWork(w *agentdb.Work) Work {
	return Work{Capability: w.Capability, Runs: wire.Long(w.Runs), Failed: wire.Long(w.Failed), Paid: wire.Long(w.Paid),
		Last: *wire.EncodeTime(w.Last), Revenue: decimalOf(w.Revenue, w.Decimals),
		Price:    decimalOf(w.Price, w.Decimals),
		Currency: wire.OrNull(w.Currency)}
}

// decimalOf writes an amount of a smallest unit as a decimal number.
func decimalOf(units string, decimals uint8) wire.Decimal {
	n, isNumber := new(big.Int).SetString(units, 10)
	if !isNumber { // the column is a whole number
		n = new(big.Int)
	}
	return wire.Decimal(repute.Amount{Value: n, Decimals: decimals}.Decimal())
}

// Paid is an execution that was paid for.
type Paid struct {
	Capability, Outcome, Settlement string
	At                              wire.Time
	Client                          wire.Address
	Amount                          wire.Decimal
	Currency                        string
	TxHash                          wire.Hash
}

// Receipts returns the newest paid executions of an agent that works with a database.
func Receipts(ctx context.Context, db *store.DB, agent string) ([]Paid, error) {
	list, err := agentdb.Entries(ctx, db, agentdb.Query{Agent: agent, Kind: agentdb.Execution, Paid: true,
		Limit: ShownPaid})
	return wire.Each(list, func(e agentdb.Entry) Paid {
		return Paid{Capability: e.Capability, Outcome: e.Outcome, Settlement: string(e.Settlement),
			At:     *wire.EncodeTime(e.At),
			Client: wire.AddressOf(e.Client), Amount: decimalOf(e.Amount.String(), e.Decimals), Currency: e.Currency,
			TxHash: wire.Hash(e.TxHash.Hex())}
	}), err
}
