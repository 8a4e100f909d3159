package store_test

import (
	"context"
	"testing"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// prefetch begins to store a batch with its ratings, as an indexer does.
func prefetch(ctx context.Context, t failer, db *store.DB, b *eventdb.Batch, applied []repute.Record) *eventdb.Prefetched {
	t.Helper()
	var err error
	b.Prepared, err = eventdb.Prepare(ctx, db, b.Records)
	ok(t, err)
	return eventdb.Prefetch(ctx, db, *b, applied)
}

// rated is a rating of the first agent.
func rated(client, index uint64) repute.NewFeedback {
	return repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(client), Index: index,
		Value: values[index%uint64(len(values))], Decimals: 2, Tag1: "quality"}
}

// revoked is the revocation of such a rating.
func revoked(client, index uint64) repute.FeedbackRevoked {
	return repute.FeedbackRevoked{TokenID: token(0), Client: rpctest.Account(client), Index: index}
}

// ratedChain is a chain whose first block has an agent with two ratings of one client.
func ratedChain(second txOf) *ledger {
	owner := rpctest.Account(1)
	return chainOf(
		txOf{
			repute.Transfer{To: owner, TokenID: token(0)},
			repute.Registered{TokenID: token(0), Owner: owner, URI: "https://a.example"},
			rated(3, 1), rated(3, 2),
		}, second)
}

// Ratings that were stored before anybody could know whether they count end as those that are stored when it is known.
func TestRatingsAreGuessed(t *testing.T) {
	t.Parallel()
	unknown, beyond := rated(3, 1), rated(6, 1)
	unknown.TokenID, beyond.Decimals = token(1), repute.MaxDecimals+1
	for name, second := range map[string]txOf{
		"all count":                   {rated(3, 3), rated(4, 1), rated(4, 2)},
		"of an unknown agent":         {unknown, rated(3, 3)},
		"after a gap":                 {rated(3, 4), rated(4, 2), rated(5, 1)},
		"none counts":                 {rated(3, 5), unknown},
		"revoked in the batch":        {rated(3, 3), revoked(3, 3), rated(4, 1), revoked(4, 1), rated(4, 2)},
		"an earlier one is revoked":   {rated(3, 3), revoked(3, 1), revoked(3, 1)},
		"revoked before it is given":  {revoked(3, 3), rated(3, 3)},
		"revoked though it waits":     {rated(4, 3), revoked(4, 3)},
		"with decimals out of range":  {beyond, rated(6, 2), rated(7, 1)},
		"with an index of no column":  {rated(8, 0), rated(8, 1<<63), rated(8, 1)},
		"twice in the batch":          {rated(3, 3), rated(4, 1), rated(3, 3)},
		"one that is stored already":  {rated(4, 1), rated(3, 2)},
		"the number of another batch": {rated(3, 1), rated(3, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := testDB(t), ctxOf(t)
			l := ratedChain(second)
			ok(t, chaindb.AddChain(ctx, db, testChain(1)))
			ok(t, chaindb.AddChain(ctx, db, testChain(2)))
			ok(t, eventdb.Apply(ctx, db, batchOf(2, l.genesis, l.blocks[:1])))
			ok(t, eventdb.Apply(ctx, db, batchOf(2, l.blocks[0].Block, l.blocks[1:])))

			first, rest := twoBatches(l, store.Lease{})
			ok(t, eventdb.Apply(ctx, db, first))
			rest.Prefetched = prefetch(ctx, t, db, &rest, nil)
			ok(t, eventdb.Apply(ctx, db, rest))
			equalDumps(t, name, dump(t, ctx, db, 2), dump(t, ctx, db, 1))
		})
	}
}

// A batch does not wait for the next one, of which it has a rating: neither when its own ratings are stored last, nor
// when it is stored anew because its transaction died.
func TestRatingInTwoBatches(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		db, ctx := testDB(t), ctxOf(t)
		l := ratedChain(txOf{rated(3, 2), rated(3, 3)})
		ok(t, chaindb.AddChain(ctx, db, testChain(1)))
		ok(t, chaindb.AddChain(ctx, db, testChain(2)))
		ok(t, eventdb.Apply(ctx, db, batchOf(2, l.genesis, l.blocks)))
		first, rest := twoBatches(l, store.Lease{})
		if own {
			first.Prefetched = prefetch(ctx, t, db, &first, nil)
			waitAheads(t, db, 1, "feedback")
			_, err := db.Pool().Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
				where datname = current_database() and state = 'idle in transaction'`)
			ok(t, err)
		}
		rest.Prefetched = prefetch(ctx, t, db, &rest, first.Records)
		waitAheads(t, db, 1, "events") // its ratings are left
		ok(t, eventdb.Apply(ctx, db, first))
		ok(t, eventdb.Apply(ctx, db, rest))
		equalDumps(t, "a rating twice", dump(t, ctx, db, 2), dump(t, ctx, db, 1))
	}
}
