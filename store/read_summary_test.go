package store_test

import (
	"cmp"
	"context"
	"errors"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/store/query"
)

// TestSummariesMatchRecords asks random questions of a random chain, at every
// block, and answers them again from the records.
func TestSummariesMatchRecords(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 1)
	w.grow(120)
	tip := w.tip().Number
	w.store(t, db, tip)
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.IntRange(0, w.agents-1).Draw(t, "token")
		n := rapid.Uint64Range(w.mintBlock(tokenID(token)), tip).Draw(t, "block")
		view := at(n)
		if rapid.Bool().Draw(t, "latest") {
			n, view = tip, latest
		}
		var clients []common.Address
		if rapid.Bool().Draw(t, "some clients") {
			for _, i := range rapid.SliceOfN(rapid.IntRange(0, 8), 1, 6).Draw(t, "clients") {
				clients = append(clients, person(i))
			}
		}
		tags := append([]string{"never used"}, worldTags...)
		tag1 := rapid.SampledFrom(tags).Draw(t, "tag1")
		tag2 := rapid.SampledFrom(tags).Draw(t, "tag2")

		ratings := w.ratings(tokenID(token), n)
		want := naiveSummary(ratings, clients, tag1, tag2)
		got, asOf, err := query.Summary(context.Background(), db, w.id(token), clients, tag1, tag2, view)
		if err != nil {
			t.Fatal(err)
		}
		if got.Count != want.Count || got.Value.Cmp(want.Value) != 0 || got.Decimals != want.Decimals {
			t.Fatalf("summary = %+v, want %+v", got, want)
		}
		if asOf.Block.Number != n || asOf.Block.Hash != w.blocks[n-w.chain.StartBlock].Hash {
			t.Fatalf("as of %+v, want block %d", asOf.Block, n)
		}
		gotTags, _, err := query.Tags(context.Background(), db, w.id(token), view)
		if err != nil {
			t.Fatal(err)
		}
		compareTags(t, gotTags, naiveTags(ratings))
	})
}

// TestRevocationsCountFromTheirBlockOn asks at the very blocks of revocations
// and just before, which random questions seldom hit.
func TestRevocationsCountFromTheirBlockOn(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 4)
	w.grow(120)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	revocations := 0
	for _, r := range w.records {
		e, ok := r.Event.(repute.FeedbackRevoked)
		if !ok {
			continue
		}
		revocations++
		id := repute.AgentID{ChainID: w.chain.ID, TokenID: e.TokenID}
		for _, n := range []uint64{r.Log.BlockNumber - 1, r.Log.BlockNumber} {
			got, err := query.ReadReputation(ctx, db, id, query.ReputationQuery{At: at(n)})
			if errors.Is(err, repute.ErrNotFound) && n < w.mintBlock(e.TokenID) {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			ratings := w.ratings(e.TokenID, n)
			want := naiveSummary(ratings, nil, "", "")
			if got.Summary.Count != want.Count || got.Summary.Value.Cmp(want.Value) != 0 ||
				got.Counts.Feedback != int64(want.Count) ||
				got.Counts.Revoked != int64(len(ratings))-int64(want.Count) ||
				len(got.Tags) != len(naiveTags(ratings)) {
				t.Errorf("agent %s at %d: %+v, want %+v of %d", e.TokenID.Dec(), n, got, want, len(ratings))
			}
		}
	}
	if revocations == 0 {
		t.Error("nothing was revoked")
	}
}

// naiveSummary goes through the clients as the contract does.
func naiveSummary(ratings []*rating, clients []common.Address, tag1, tag2 string) repute.Summary {
	if clients == nil {
		for _, r := range ratings {
			if !slices.Contains(clients, r.Client) {
				clients = append(clients, r.Client)
			}
		}
	}
	var tallies []repute.Tally
	for _, c := range clients {
		for _, r := range ratings {
			if r.Client == c && r.revoked == nil && (tag1 == "" || r.Tag1 == tag1) && (tag2 == "" || r.Tag2 == tag2) {
				tallies = append(tallies, repute.Tally{Decimals: r.Decimals, Count: 1, Sum: r.Value})
			}
		}
	}
	return repute.Summarize(tallies)
}

// naiveTag is a tag summary in fractions.
type naiveTag struct {
	tag                    string
	count                  int64
	votes                  []*big.Rat
	median, mean, min, max *big.Rat
}

func rat(a repute.Amount) *big.Rat {
	return new(big.Rat).SetFrac(a.Value, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(a.Decimals)), nil))
}

func naiveTags(ratings []*rating) []*naiveTag {
	byTag := map[string]*naiveTag{}
	newest := map[string]map[common.Address]*rating{}
	for _, r := range ratings {
		if r.revoked != nil {
			continue
		}
		if byTag[r.Tag1] == nil {
			byTag[r.Tag1], newest[r.Tag1] = &naiveTag{tag: r.Tag1}, map[common.Address]*rating{}
		}
		byTag[r.Tag1].count++
		newest[r.Tag1][r.Client] = r
	}
	var out []*naiveTag
	for tag, n := range byTag {
		for _, r := range newest[tag] {
			n.votes = append(n.votes, rat(repute.Amount{Value: r.Value, Decimals: r.Decimals}))
		}
		n.finish()
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b *naiveTag) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.tag, b.tag))
	})
	return out
}

func (n *naiveTag) finish() {
	slices.SortFunc(n.votes, (*big.Rat).Cmp)
	k := len(n.votes)
	n.min, n.max = n.votes[0], n.votes[k-1]
	n.median = new(big.Rat).Add(n.votes[(k-1)/2], n.votes[k/2])
	n.median.Mul(n.median, big.NewRat(1, 2))
	n.mean = new(big.Rat)
	for _, v := range n.votes {
		n.mean.Add(n.mean, v)
	}
	n.mean.Mul(n.mean, big.NewRat(1, int64(k)))
	// Truncated toward zero at 18 decimals.
	wad := new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
	scaled := new(big.Rat).Mul(n.mean, new(big.Rat).SetInt(wad))
	n.mean = new(big.Rat).SetFrac(new(big.Int).Quo(scaled.Num(), scaled.Denom()), wad)
}

func compareTags(t *rapid.T, got []repute.TagSummary, want []*naiveTag) {
	if len(got) != len(want) {
		t.Fatalf("%d tags, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Tag != w.tag || g.Count != w.count || g.Reviewers != int64(len(w.votes)) {
			t.Fatalf("tag %d = %q: %d ratings of %d, want %q: %d of %d", i, g.Tag, g.Count, g.Reviewers, w.tag, w.count,
				len(w.votes))
		}
		for name, pair := range map[string][2]*big.Rat{
			"median": {rat(g.Median), w.median}, "mean": {rat(g.Mean), w.mean}, "min": {rat(g.Min), w.min},
			"max": {rat(g.Max), w.max},
		} {
			if pair[0].Cmp(pair[1]) != 0 {
				t.Fatalf("%s of %q = %s, want %s", name, w.tag, pair[0].RatString(), pair[1].RatString())
			}
		}
	}
}

// TestReputationIsItsParts checks that the one-snapshot answer says what the
// single ones say, and that the loader agrees.
func TestReputationIsItsParts(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 2)
	w.grow(80)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	var ids []repute.AgentID
	for token := range w.agents {
		ids = append(ids, w.id(token))
	}
	loaded, err := query.Reputations(ctx, db, ids, query.ReputationParts{Summary: true, Tags: true, Results: true,
		Independence: true})
	if err != nil {
		t.Fatal(err)
	}
	for token, id := range ids {
		ratings := w.ratings(id.TokenID, w.tip().Number)
		r, err := query.ReadReputation(ctx, db, id, query.ReputationQuery{At: latest})
		if err != nil {
			t.Fatal(err)
		}
		want := naiveSummary(ratings, nil, "", "")
		if r.Agent != id || r.Summary.Count != want.Count || r.Summary.Value.Cmp(want.Value) != 0 {
			t.Errorf("reputation of %d = %+v, want %+v", token, r.Summary, want)
		}
		if l := loaded[id]; !reflect.DeepEqual(
			[]any{l.Agent, l.Summary, l.Tagged, l.Score, l.Independence},
			[]any{r.Agent, r.Summary, r.Tagged, r.Score, r.Independence}) {
			t.Errorf("loaded reputation of %d = %+v, alone %+v", token, l, r)
		}
		a, _, err := query.Agent(ctx, db, id, latest)
		if err != nil {
			t.Fatal(err)
		}
		if r.Counts != a.Counts || r.Counts.Feedback != int64(want.Count) {
			t.Errorf("counts of %d = %+v, the agent's are %+v, want %d live", token, r.Counts, a.Counts, want.Count)
		}
	}
}

func TestSummaryRefusesWhatTheContractRefuses(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 3)
	w.mine(w.mint(person(0))...)
	w.store(t, db, w.tip().Number)
	_, _, err := query.Summary(context.Background(), db, w.id(0), []common.Address{}, "", "", latest)
	if wantField(err) != "clients" {
		t.Errorf("no clients gave %v", err)
	}
	if _, _, err := query.Summary(context.Background(), db, w.id(1), nil, "", "", latest); !errors.Is(err,
		repute.ErrNotFound) {
		t.Errorf("an unknown agent gave %v", err)
	}
	s, _, err := query.Summary(context.Background(), db, w.id(0), nil, "", "", latest)
	if err != nil || s.Count != 0 || s.Value.Sign() != 0 {
		t.Errorf("an agent without feedback gave %+v, %v", s, err)
	}
}

// wantField is the field that an input error names, "" for other errors.
func wantField(err error) string {
	var in *repute.InputError
	if errors.As(err, &in) {
		return in.Field
	}
	return ""
}
