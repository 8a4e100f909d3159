package engine

import (
	"context"
	"time"

	"repute/store"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rows"
	"repute/trust/source"
)

// paidBy is a source by payments with its paid ratings as of a run.
type paidBy struct {
	source  *source.Source
	ratings []trustdb.PaidRating
}

// readPaid reads the paid ratings of those sources that are by payments, as of a run.
func readPaid(ctx context.Context, db *store.DB, run scoredb.Run, sources []*source.Source) (list []paidBy, err error) {
	for _, s := range sources {
		if s.Read.Payments == nil {
			continue
		}
		by, since := paidBy{source: s}, run.Block.Time.Add(-time.Duration(s.AgeDays)*24*time.Hour)
		if !run.Block.Time.IsZero() {
			by.ratings, err = trustdb.PaidRatings(ctx, db, run.ChainID, run.Block, since, s.Read.Payments.Payees)
		}
		if list = append(list, by); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// spent returns the reading of a source by payments. Its agents MUST have been in GraphOf.Owners of the walk. Payees
// count by their weights by roots alone, so that no source makes another one's payees.
func (w *Walked) spent(by paidBy) source.Reading {
	graph, rule := w.weights.Graph(), by.source.Read.Payments
	var payments []source.Payment
	for _, p := range by.ratings {
		owner, own := w.reader.OwnerOf(p.TokenID, p.Block)
		payee := graph.Node(owner)
		if !own || payee == flow.NoNode || payee == graph.Node(p.Client) || w.weights.Weight(payee) < rule.Vouched {
			continue
		}
		payments = append(payments, source.Payment{Rater: p.Client, Payee: p.Payment.To,
			Identity: graph.Identity(owner),
			Paid:     p.Payment.Paid, Time: p.Payment.Time, ChainID: p.Payment.ChainID, Tx: p.Payment.Tx,
			LogIndex: p.Payment.LogIndex})
	}
	return by.source.Spent(w.run.ChainID, w.run.Block, payments)
}

// Spent reads a source by payments again, as of a stored run and by its weights. A payment that was verified or
// returned since makes another reading. The error is a *replay.PrunedError where the graph of the run cannot be made
// again.
func Spent(ctx context.Context, db *store.DB, run scoredb.Run, s *source.Source) (source.Reading, error) {
	in, err := readInputs(ctx, db, run)
	if err != nil {
		return source.Reading{}, err
	}
	paid, err := readPaid(ctx, db, run, []*source.Source{s})
	if err != nil {
		return source.Reading{}, err
	}
	w, err := in.walk(ctx, rows.New(db, run.ChainID), run, paid)
	if err != nil {
		return source.Reading{}, err
	}
	return w.spent(paid[0]), nil
}
