package engine

import (
	"context"
	"time"

	"repute"
	"repute/store"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rows"
	"repute/trust/source"
)

// paidBy has the paid ratings that a source by payments reads as of a run.
type paidBy struct {
	source  *source.Source
	ratings []trustdb.PaidRating
}

// readPaid reads the paid ratings of a source by payments as of a run.
func readPaid(ctx context.Context, db *store.DB, run *scoredb.Run, s *source.Source) (paidBy, error) {
	at := run.Block
	if at.Time.IsZero() {
		return paidBy{source: s}, nil
	}
	since := at.Time.Add(-time.Duration(s.AgeDays) * 24 * time.Hour)
	list, err := trustdb.PaidRatings(ctx, db, run.ChainID, at, since, s.Read.Payments.Payees)
	return paidBy{s, list}, err
}

// paidOf reads the paid ratings of all sources by payments of a run, none for a run without sources.
func (k *keeper) paidOf(ctx context.Context, run *scoredb.Run, got *sourceReadings) (list []paidBy, err error) {
	if got == nil {
		return nil, nil
	}
	for _, s := range k.sourcesOn(got.policy, nil) {
		if s.Read.Payments == nil {
			continue
		}
		one, err := readPaid(ctx, k.db, run, s)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// agentsOf returns the agents that were paid.
func agentsOf(paid []paidBy) (list []repute.TokenID) {
	for _, by := range paid {
		for i := range by.ratings {
			list = append(list, by.ratings[i].TokenID)
		}
	}
	return list
}

// spent is what a source by payments says of the raters of a run, whose walk was told of these payments. Payees count
// by their weights by roots alone, so that no source makes another one's payees.
func (w *Walked) spent(by paidBy) source.Reading {
	graph, rule := w.weights.Graph(), by.source.Read.Payments
	var payments []source.Payment
	for _, p := range by.ratings {
		owner, own := w.reader.OwnerOf(p.TokenID, p.Block)
		payee := graph.Node(owner)
		if !own || payee == flow.NoNode || payee == graph.Node(p.Client) || w.weights.Weight(payee) < rule.Vouched {
			continue
		}
		payments = append(payments, source.Payment{Rater: p.Client, Payee: p.Payment.To, Identity: graph.Identity(owner),
			Paid: p.Payment.Paid, Time: p.Payment.Time, ChainID: p.Payment.ChainID, Tx: p.Payment.Tx,
			LogIndex: p.Payment.LogIndex})
	}
	return by.source.Spent(w.run.ChainID, w.run.Block, payments)
}

// Spent reads a source by payments again, as of a stored run and by its weights. A payment that was verified or returned
// since makes another reading. The error is a *PrunedError where the graph of the run cannot be made again.
func Spent(ctx context.Context, db *store.DB, run scoredb.Run, s *source.Source) (source.Reading, error) {
	in, err := readInputs(ctx, db, run)
	if err != nil {
		return source.Reading{}, err
	}
	paid, err := readPaid(ctx, db, &run, s)
	if err != nil {
		return source.Reading{}, err
	}
	w, err := in.walk(ctx, rows.New(db, run.ChainID), run, []paidBy{paid})
	if err != nil {
		return source.Reading{}, err
	}
	return w.spent(paid), nil
}
