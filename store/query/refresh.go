package query

import (
	"context"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

// RequestRefresh makes the document of an agent's current URI and the proofs of its domains due
// now, at most once a minute. On their host only documents that were never read come first.
// Failures still count: a dead document gets one attempt. A document that cannot change and is
// stored is not fetched, only the proofs are. repute.ErrNotFound when there is no such agent or it
// has no URI. repute.ErrConflict when the URI itself cannot be read. *repute.DeniedError when the
// operator does not show it. The agent is read before the transaction begins: an agent that changes its URI in between
// gets the new one scheduled.
func RequestRefresh(ctx context.Context, db *store.DB, id repute.AgentID) (r repute.Refresh, err error) {
	a, _, err := Agent(ctx, db, id, repute.At{Finality: repute.Latest})
	if err != nil {
		return r, err
	}
	switch a.Document.Status {
	case repute.DocumentNone:
		return r, &repute.MissingError{What: "agent " + id.Short(), Why: "has no URI on chain",
			Hint: "its owner can set one: there is nothing to read until then"}
	case repute.DocumentDenied:
		return r, &repute.DeniedError{Reason: a.Document.Detail}
	case repute.DocumentDead:
		if a.Document.NextTry.IsZero() {
			return r, repute.Conflict("the URI of agent %s can never be read: %s", id.Short(), a.Document.Reason)
		}
	}
	err = db.InTx(ctx, pgx.TxOptions{}, "refresh document", func(tx pgx.Tx) error {
		r, err = docdb.Refresh(ctx, tx, id)
		return err
	})
	return r, err
}
