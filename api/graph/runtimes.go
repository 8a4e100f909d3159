package graph

import (
	"context"
	"math/big"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/agentdb"
)

const (
	// shownRuntimes is how many agents that run here are shown.
	shownRuntimes = 20
	// shownPaid is how many paid executions of one agent are shown.
	shownPaid = 20
)

// runtime is an agent that works with this database.
type runtime struct {
	Agent  string
	Seen   wire.Time
	Mode   string
	Since  *wire.Time
	Policy *string
	Works  []runtimeWork
}

// runtimeWork is what an agent did for one capability.
type runtimeWork struct {
	Capability         string
	Runs, Failed, Paid wire.Long
	Last               wire.Time
	Revenue, Price     wire.Decimal
	Currency           *string
}

// Runtimes lists agents that work with this database, as of the last ten seconds, for callers with the role operate.
func (q *queryResolver) Runtimes(ctx context.Context) (*[]*runtime, error) {
	if err := httpapi.Allowed(ctx, httpapi.RoleOperate); err != nil {
		return nil, err
	}
	if err := charge(ctx, 2*searchCost); err != nil {
		return nil, err
	}
	db := q.index.DB
	out, err := countsOf(db).runtimes.Get(ctx, func(ctx context.Context) ([]*runtime, error) { return readRuntimes(ctx, db) })
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// readRuntimes reads the agents that work with a database, and what they did.
func readRuntimes(ctx context.Context, db *store.DB) ([]*runtime, error) {
	list, err := agentdb.Runtimes(ctx, db, shownRuntimes)
	if err != nil {
		return nil, err
	}
	works, err := agentdb.Works(ctx, db, wire.Each(list, func(r agentdb.Runtime) string { return r.Agent }))
	if err != nil {
		return nil, err
	}
	out, by := make([]*runtime, 0, len(list)), map[string]*runtime{}
	for _, r := range list {
		one := &runtime{Agent: r.Agent, Seen: *wire.EncodeTime(r.Seen), Mode: r.Mode, Since: wire.EncodeTime(r.Since),
			Policy: wire.OrNull(r.Policy), Works: []runtimeWork{}}
		out, by[r.Agent] = append(out, one), one
	}
	for i := range works {
		one := by[works[i].Agent]
		one.Works = append(one.Works, encodeWork(&works[i]))
	}
	return out, nil
}

// encodeWork writes the work for a capability.
func encodeWork(w *agentdb.Work) runtimeWork {
	return runtimeWork{Capability: w.Capability, Runs: wire.Long(w.Runs), Failed: wire.Long(w.Failed), Paid: wire.Long(w.Paid),
		Last: *wire.EncodeTime(w.Last), Revenue: decimalOf(w.Revenue, w.Decimals), Price: decimalOf(w.Price, w.Decimals),
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

// paidExecution is an execution that was paid for.
type paidExecution struct {
	Capability, Outcome, Settlement string
	At                              wire.Time
	Client                          wire.Address
	Amount                          wire.Decimal
	Currency                        string
	TxHash                          wire.Hash
}

// Receipts lists the newest paid executions of an agent that works with this database, for callers with the role operate.
func (q *queryResolver) Receipts(ctx context.Context, args struct{ Agent wire.ID }) (*[]paidExecution, error) {
	if err := httpapi.Allowed(ctx, httpapi.RoleOperate); err != nil {
		return nil, err
	}
	if err := charge(ctx, readCost+shownPaid); err != nil {
		return nil, err
	}
	list, err := agentdb.Entries(ctx, q.index.DB, agentdb.Query{Agent: string(args.Agent), Kind: agentdb.Execution, Paid: true,
		Limit: shownPaid})
	out := wire.Each(list, func(e agentdb.Entry) paidExecution {
		return paidExecution{Capability: e.Capability, Outcome: e.Outcome, Settlement: string(e.Settlement), At: *wire.EncodeTime(e.At),
			Client: wire.AddressOf(e.Client), Amount: decimalOf(e.Amount.String(), e.Decimals), Currency: e.Currency,
			TxHash: wire.Hash(e.TxHash.Hex())}
	})
	return &out, err
}
