package store_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/store/trustdb"
)

// praise is a rating of the agent; ratings of one value in one block are a burst.
func praise(agent, client int, index uint64, value int64) repute.NewFeedback {
	return repute.NewFeedback{TokenID: tokenID(agent), Client: person(client), Index: index, Value: big.NewInt(value),
		Tag1: "starred"}
}

// Raters are one party by their agents and by bursts; withdrawn ratings, own further
// ratings and ratings of others change what they should.
func TestIndependence(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "https://x/1", "https://x/2") // owners 0, 1 and 2
	alone := w.mine(praise(0, 10, 1, 90), praise(0, 11, 1, 80))
	w.mine(praise(0, 10, 2, 90), praise(1, 11, 1, 90)) // 10 rates it again, 11 another
	batch := w.mine(praise(0, 12, 1, 77), praise(0, 13, 1, 77), praise(0, 14, 1, 70))
	// 20 is the wallet of owner 1, who rates too: one party.
	w.mine(repute.MetadataSet{TokenID: tokenID(1), Key: "agentWallet", Value: person(20).Bytes()})
	w.mine(praise(0, 20, 1, 60), praise(0, 1, 1, 61))
	w.mine(repute.FeedbackRevoked{TokenID: tokenID(0), Client: person(14), Index: 1})
	w.mine(repute.FeedbackRevoked{TokenID: tokenID(1), Client: person(11), Index: 1})
	w.store(t, db, w.tip().Number)

	for _, c := range []struct {
		at   repute.At
		want repute.Independence
	}{
		{at(alone.Number), repute.Independence{Ratings: 2, Raters: 2, Clusters: 2, OneAgent: 2, Busiest: 2}},
		{at(batch.Number), repute.Independence{Ratings: 6, Raters: 5, Clusters: 4, OneAgent: 4, Busiest: 6}},
		{latest, repute.Independence{Ratings: 7, Raters: 6, Clusters: 4, OneAgent: 6, Busiest: 7}},
	} {
		got, asOf, err := query.Independence(ctxOf(t), db, w.id(0), c.at)
		ok(t, err)
		if got != c.want {
			t.Errorf("at %+v: %+v, want %+v", asOf.Block.Number, got, c.want)
		}
	}
	none, _, err := query.Independence(ctxOf(t), db, w.id(2), latest)
	ok(t, err)
	if none != (repute.Independence{}) || none.OneAgentShare() != 0 || none.Burstiness() != 0 {
		t.Errorf("nobody rated it: %+v", none)
	}
}

// The transactions are those of the logs, and of no other chain than the one asked.
func TestTrustTxs(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0")
	b := w.mine(praise(0, 10, 1, 90), praise(0, 11, 1, 80))
	w.store(t, db, w.tip().Number)
	missing := trustdb.LogAt{Block: b.Number, LogIndex: 99}
	ask := []trustdb.LogAt{missing}
	want := map[trustdb.LogAt]common.Hash{}
	for _, r := range w.records {
		l := trustdb.LogAt{Block: r.Log.BlockNumber, LogIndex: uint32(r.Log.Index)}
		ask, want[l] = append(ask, l), r.Log.TxHash
	}
	got, err := trustdb.ReadTransactions(ctxOf(t), db, w.chain.ID, b, ask)
	ok(t, err)
	if len(got) != len(want) {
		t.Errorf("%d transactions, want %d", len(got), len(want))
	}
	for l, tx := range want {
		if got[l] != tx {
			t.Errorf("%+v: %s, want %s", l, got[l], tx)
		}
	}
	b.Hash[0] ^= 1
	if _, err := trustdb.ReadTransactions(ctxOf(t), db, w.chain.ID, b, ask); !errors.Is(err, repute.ErrReorged) {
		t.Errorf("of a block that was replaced: %v", err)
	}
}
