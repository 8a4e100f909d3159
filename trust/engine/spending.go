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

// spent is what a source by payments says of the raters of a run. Payees count by their weights by roots alone, so that
// no source makes another one's payees.
func (w *Walked) spent(ctx context.Context, db *store.DB, s *source.Source) (source.Reading, error) {
	rule, at := s.Read.Payments, w.run.Block
	if at.Time.IsZero() {
		return s.Spent(w.run.ChainID, at, nil), nil
	}
	since := at.Time.Add(-time.Duration(s.AgeDays) * 24 * time.Hour)
	paid, err := trustdb.PaidRatings(ctx, db, w.run.ChainID, at, since, rule.Payees)
	if err != nil {
		return source.Reading{}, err
	}
	graph := w.weights.Graph()
	var payments []source.Payment
	for _, p := range paid {
		owner, own := w.reader.OwnerOf(p.TokenID, p.Block)
		payee := graph.Node(owner)
		if !own || payee == flow.NoNode || payee == graph.Node(p.Client) || w.weights.Weight(payee) < rule.Vouched {
			continue
		}
		payments = append(payments, source.Payment{Rater: p.Client, Payee: p.Payment.To, Identity: graph.Identity(owner),
			Paid: p.Payment.Paid, Time: p.Payment.Time, ChainID: p.Payment.ChainID, Tx: p.Payment.Tx,
			LogIndex: p.Payment.LogIndex})
	}
	return s.Spent(w.run.ChainID, at, payments), nil
}

// Spent reads a source by payments again, as of a stored run and by its weights. A payment that was verified or returned
// since makes another reading. The error is a *PrunedError where the graph of the run cannot be made again.
func Spent(ctx context.Context, db *store.DB, run scoredb.Run, s *source.Source) (source.Reading, error) {
	in, err := readInputs(ctx, db, run)
	if err != nil {
		return source.Reading{}, err
	}
	w, err := in.walk(ctx, rows.New(db, run.ChainID), run, true)
	if err != nil {
		return source.Reading{}, err
	}
	return w.spent(ctx, db, s)
}
