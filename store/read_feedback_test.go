package store_test

import (
	"context"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
)

func TestFeedbackMatchesRecords(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 21)
	w.grow(150)
	tip := w.tip().Number
	w.store(t, db, tip)
	ctx := context.Background()
	star, empty := "starred", ""
	filters := map[string]query.FeedbackFilter{
		"live":    {},
		"all":     {IncludeRevoked: true},
		"oldest":  {IncludeRevoked: true, Order: query.OldestFirst},
		"clients": {Clients: []common.Address{person(1), person(2), person(2)}},
		"nobody":  {Clients: []common.Address{}},
		"tag1":    {Tag1: &star},
		"tags":    {Tag1: &empty, Tag2: &star, IncludeRevoked: true},
	}
	for token := range min(w.agents, 6) {
		id := w.id(token)
		for _, n := range []uint64{w.mintBlock(id.TokenID), (w.mintBlock(id.TokenID) + tip) / 2, tip} {
			for name, f := range filters {
				for _, limit := range []int{1, 4, store.MaxPage} {
					f.Limit, f.At = limit, at(n)
					got := collect(t, func(after string) (store.Page[repute.Feedback], error) {
						f.After = after
						return query.Feedback(ctx, db, id, f)
					})
					compareFeedback(t, fmt.Sprintf("%s of %d at %d by %d", name, token, n, limit), got,
						naiveFeedback(w.ratings(id.TokenID, n), f))
				}
			}
		}
	}
}

// TestFeedbackChangesAtItsBlock lists at the very blocks of revocations and
// responses and just before.
func TestFeedbackChangesAtItsBlock(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 22)
	w.grow(120)
	w.mine(w.rate(tokenID(0), person(50), repute.Amount{Value: big.NewInt(5)}, "", "")...)
	for range 3 {
		w.mine(repute.ResponseAppended{TokenID: tokenID(0), Client: person(50), Index: 1, Responder: person(0),
			URI: w.uri()})
	}
	w.store(t, db, w.tip().Number)
	edges := map[repute.TokenID][]uint64{}
	for _, r := range w.records {
		switch e := r.Event.(type) {
		case repute.FeedbackRevoked:
			edges[e.TokenID] = append(edges[e.TokenID], r.Log.BlockNumber)
		case repute.ResponseAppended:
			edges[e.TokenID] = append(edges[e.TokenID], r.Log.BlockNumber)
		}
	}
	if len(edges) == 0 {
		t.Fatal("nothing was revoked or answered")
	}
	for token, blocks := range edges {
		for _, b := range slices.Compact(blocks) {
			// Both existed before: an agent is rated before the rating changes.
			for _, n := range []uint64{max(b-1, w.mintBlock(token)), b} {
				f := query.FeedbackFilter{IncludeRevoked: true, Limit: store.MaxPage, At: at(n)}
				page, err := query.Feedback(context.Background(), db,
					repute.AgentID{ChainID: w.chain.ID, TokenID: token}, f)
				if err != nil {
					t.Fatal(err)
				}
				compareFeedback(t, fmt.Sprintf("%s at %d", token.Dec(), n), page.Items,
					naiveFeedback(w.ratings(token, n), f))
			}
		}
	}
}

// naiveFeedback filters and orders the ratings.
func naiveFeedback(ratings []*rating, f query.FeedbackFilter) []*rating {
	var out []*rating
	for _, r := range ratings {
		if (r.revoked == nil || f.IncludeRevoked) && (f.Clients == nil || slices.Contains(f.Clients, r.Client)) &&
			(f.Tag1 == nil || *f.Tag1 == r.Tag1) && (f.Tag2 == nil || *f.Tag2 == r.Tag2) {
			out = append(out, r)
		}
	}
	if f.Order != query.OldestFirst {
		slices.Reverse(out)
	}
	return out
}

func compareFeedback(t *testing.T, what string, got []repute.Feedback, want []*rating) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d ratings, want %d", what, len(got), len(want))
		return
	}
	for i, w := range want {
		g := got[i]
		same := g.Client == w.Client && g.Index == w.Index && g.Value.Cmp(w.Value) == 0 && g.Decimals == w.Decimals &&
			g.Tag1 == w.Tag1 && g.Tag2 == w.Tag2 && g.Endpoint == w.Endpoint && g.URI == w.URI &&
			g.Hash == w.FeedbackHash &&
			g.Given == w.point && g.ResponseCount == w.answers && len(g.Responses) == int(min(w.answers, 10))
		if !same || !reflect.DeepEqual(g.Revoked, w.revoked) {
			t.Errorf("%s: rating %d = %+v, want %+v", what, i, g, w)
		}
		for j := range g.Responses[:max(0, len(g.Responses)-1)] {
			if a, b := g.Responses[j].At, g.Responses[j+1].At; a.Block > b.Block || a.Block == b.Block &&
				a.LogIndex >= b.LogIndex {
				t.Errorf("%s: responses of rating %d are out of order", what, i)
			}
		}
	}
}
