package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/column"
	"repute/store/eventdb"
	"repute/store/query"
	"repute/store/statsdb"
)

// twoWorlds are two chains of one database with the same people.
func twoWorlds(t *testing.T, seed uint64) (*store.DB, []*world) {
	t.Helper()
	db, worlds := open(t), []*world{newWorld(3, 50, seed), newWorld(9, 7, seed+1)}
	for _, w := range worlds {
		w.grow(80)
		w.spread(9)
		w.store(t, db, w.tip().Number)
	}
	return db, worlds
}

// live are the ratings of all agents of a world, also revoked ones.
func (w *world) allRatings() (out []*rating) {
	for agent := range w.agents {
		out = append(out, w.ratings(tokenID(agent), w.tip().Number)...)
	}
	return out
}

// TestClients: what a client did on each chain is what the records say, and its pages have each of its ratings once,
// chain by chain and the newest first.
func TestClients(t *testing.T) {
	t.Parallel()
	db, worlds := twoWorlds(t, 81)
	ctx := context.Background()
	sqlExec(t, db,
		"insert into trust_roots (chain_id, set_name, address, weight, class, reason) values (3, 'default', $1, 1, '', 't'), (9, 'default', $1, 1, 'B', 't'), (9, 'other', $2, 1, '', 't')",
		person(1).Bytes(), person(2).Bytes())
	for n := range 8 {
		client := person(n)
		list, asOf, err := statsdb.Client(ctx, db, client, nil)
		ok(t, err)
		got := map[uint64]statsdb.ClientChain{}
		for _, c := range list {
			got[c.ChainID] = c
		}
		if len(asOf) != 2 {
			t.Errorf("asOf %+v", asOf)
		}
		for _, w := range worlds {
			w.checkClient(t, client, got[w.chain.ID])
			if root, writer := n == 1 && w.chain.ID == 3, n == 1 && w.chain.ID == 9; got[w.chain.ID].Root != root ||
				got[w.chain.ID].Writer != writer {
				t.Errorf("%s on %d: %+v", client, w.chain.ID, got[w.chain.ID])
			}
		}
		for _, revoked := range []bool{false, true} {
			checkClientPages(t, db, worlds, client, revoked)
		}
	}
}

// checkClient compares what a client did on a chain with the records.
func (w *world) checkClient(t *testing.T, client common.Address, got statsdb.ClientChain) {
	t.Helper()
	var want statsdb.ClientChain
	agents := map[string]bool{}
	for _, r := range w.allRatings() {
		if r.Client != client {
			continue
		}
		if want.First.Number == 0 || r.point.Block < want.First.Number {
			want.First = repute.Block{Number: r.point.Block, Time: r.point.Time}
		}
		if r.point.Block > want.Last.Number {
			want.Last = repute.Block{Number: r.point.Block, Time: r.point.Time}
		}
		if r.revoked != nil {
			want.Revoked++
			continue
		}
		want.Ratings++
		agents[r.TokenID.Dec()] = true
	}
	if got.Ratings != want.Ratings || got.Revoked != want.Revoked || got.Agents != int64(len(agents)) ||
		got.First.Number != want.First.Number || !got.First.Time.Equal(want.First.Time) ||
		got.Last.Number != want.Last.Number {
		t.Errorf("%s on %d: %+v, want %+v and %d agents", client, w.chain.ID, got, want, len(agents))
	}
	for _, r := range got.Related {
		if r.Address == client || r.Role != statsdb.RoleOwner && r.Role != statsdb.RoleWallet ||
			r.Agent.Registry != w.chain.Identity {
			t.Errorf("%s on %d: %+v", client, w.chain.ID, r)
		}
	}
}

// checkClientPages reads all pages of a client's ratings.
func checkClientPages(t *testing.T, db *store.DB, worlds []*world, client common.Address, revoked bool) {
	t.Helper()
	want := map[string]bool{}
	for _, w := range worlds {
		for _, r := range w.allRatings() {
			if r.Client == client && (revoked || r.revoked == nil) {
				want[fmt.Sprint(w.chain.ID, r.TokenID.Dec(), r.Index)] = true
			}
		}
	}
	var last repute.Feedback
	f := query.ParticipantFilter{Limit: 7, IncludeRevoked: revoked}
	for {
		page, err := query.FeedbackOf(context.Background(), db, client, f, nil)
		ok(t, err)
		for _, r := range page.Items {
			key := fmt.Sprint(r.Agent.ChainID, r.Agent.TokenID.Dec(), r.Index)
			if !want[key] || r.Client != client {
				t.Errorf("%s: %s is not a rating of it, or is listed twice", client, key)
			}
			delete(want, key)
			if before := r.Agent.ChainID == last.Agent.ChainID && (r.Given.Block > last.Given.Block ||
				r.Given.Block == last.Given.Block && r.Given.LogIndex >= last.Given.LogIndex); before ||
				r.Agent.ChainID < last.Agent.ChainID {
				t.Errorf("%s: %+v after %+v", client, r.Given, last.Given)
			}
			last = r
		}
		if f.After = page.Next; f.After == "" {
			break
		}
	}
	if len(want) > 0 {
		t.Errorf("%s: not listed: %v", client, slices.Collect(maps.Keys(want)))
	}
}

// TestValidators: counts, medians and means are those of the records, pages have each validator once in the order of
// requests, and one validator is told as in the list.
func TestValidators(t *testing.T) {
	t.Parallel()
	db, worlds := twoWorlds(t, 83)
	ctx := context.Background()
	for _, trusted := range []bool{false, true} {
		f := statsdb.ValidatorFilter{TrustedOnly: trusted, Limit: 2}
		seen := map[string]bool{}
		var last *statsdb.Validator
		for {
			page, err := statsdb.Validators(ctx, db, f)
			ok(t, err)
			for _, v := range page.Items {
				if last != nil && v.Requests > last.Requests {
					t.Errorf("%+v after %+v", v, last)
				}
				last = &v
				seen[fmt.Sprint(v.ChainID, v.Address)] = true
				worlds[slices.IndexFunc(worlds,
					func(w *world) bool { return w.chain.ID == v.ChainID })].checkValidator(t, v, trusted)
				alone, err := statsdb.Validators(ctx, db,
					statsdb.ValidatorFilter{Address: &v.Address, ChainIDs: []uint64{v.ChainID},
						TrustedOnly: trusted, Limit: 5})
				ok(t, err)
				if len(alone.Items) != 1 || fmt.Sprint(alone.Items[0].Requests,
					alone.Items[0].Answered) != fmt.Sprint(v.Requests, v.Answered) {
					t.Errorf("alone %+v, in the list %+v", alone.Items, v)
				}
			}
			if f.After = page.Next; f.After == "" {
				break
			}
		}
		want := map[string]bool{}
		for _, w := range worlds {
			for i, a := range w.asked {
				if !trusted || w.askedOf[i] == trustedOne {
					want[fmt.Sprint(w.chain.ID, a.Validator)] = true
				}
			}
		}
		if !maps.Equal(seen, want) {
			t.Errorf("validators %v, want %v", seen, want)
		}
	}
	for _, w := range worlds {
		page, err := query.ValidationsOf(ctx, db, w.asked[0].Validator,
			query.ParticipantFilter{ChainIDs: []uint64{w.chain.ID}, Limit: 200}, nil)
		ok(t, err)
		n := 0
		for _, a := range w.asked {
			if a.Validator == w.asked[0].Validator {
				n++
			}
		}
		if len(page.Items) != n {
			t.Errorf("%d validations, want %d", len(page.Items), n)
		}
	}
}

// answered is a request of the records with its answers.
type answered struct {
	block   uint64
	time    time.Time
	answers []repute.ValidationResponse
	at      []uint64
	atTime  time.Time
}

// checkValidator compares a validator with the records.
func (w *world) checkValidator(t *testing.T, v statsdb.Validator, trusted bool) {
	t.Helper()
	requests := map[common.Hash]*answered{}
	for _, r := range w.records {
		switch e := r.Event.(type) {
		case repute.ValidationRequest:
			if e.Validator == v.Address && (!trusted || r.Log.Address == trustedOne) {
				requests[e.RequestHash] = &answered{block: r.Log.BlockNumber, time: r.Time}
			}
		case repute.ValidationResponse:
			if a := requests[e.RequestHash]; a != nil {
				if a.answers = append(a.answers, e); len(a.at) == 0 {
					a.atTime = r.Time
				}
				a.at = append(a.at, r.Log.BlockNumber)
			}
		}
	}
	var n, sum int64
	var blocks []int64
	tags := map[string]int64{}
	for _, a := range requests {
		if len(a.answers) == 0 {
			continue
		}
		newest := a.answers[len(a.answers)-1]
		n, sum = n+1, sum+int64(newest.Response)
		blocks = append(blocks, int64(a.at[0]-a.block))
		tags[newest.Tag]++
	}
	if v.Requests != int64(len(requests)) || v.Answered != n {
		t.Errorf("%s on %d: %+v, want %d of %d", v.Address, v.ChainID, v, n, len(requests))
	}
	if n == 0 {
		if v.MeanResponse != nil || v.MedianBlocks != nil || len(v.Tags) != 0 {
			t.Errorf("%s without an answer: %+v", v.Address, v)
		}
		return
	}
	slices.Sort(blocks)
	if median := blocks[(len(blocks)-1)/2]; v.MedianBlocks == nil || *v.MedianBlocks != median {
		t.Errorf("%s: median %v of %v", v.Address, v.MedianBlocks, blocks)
	}
	if mean := float64(sum) / float64(n); v.MeanResponse == nil || *v.MeanResponse-mean > 1e-9 ||
		mean-*v.MeanResponse > 1e-9 {
		t.Errorf("%s: mean %v, want %v", v.Address, v.MeanResponse, mean)
	}
	got := map[string]int64{}
	for _, tag := range v.Tags {
		got[string(tag.Tag.Bytes)] = tag.Count
	}
	if !maps.Equal(got, tags) {
		t.Errorf("%s: tags %v, want %v", v.Address, got, tags)
	}
}

// TestTags: use is counted as the records say, for tag1 and for the tag2 of one, in pages by use, on one chain and on
// all; values are scored within the range of their tag alone.
func TestTags(t *testing.T) {
	t.Parallel()
	db, worlds := twoWorlds(t, 85)
	ctx := context.Background()
	starred := "starred"
	for _, c := range []struct {
		tag1   *string
		worlds []*world
		chains []uint64
	}{{nil, worlds, nil}, {&starred, worlds, nil}, {nil, worlds[:1], []uint64{worlds[0].chain.ID}},
		{&starred, worlds[1:], []uint64{worlds[1].chain.ID}}} {
		tag1 := c.tag1
		type use struct {
			ratings, scored int64
			agents, raters  map[string]bool
		}
		want := map[string]*use{}
		for _, w := range c.worlds {
			for _, r := range w.allRatings() {
				if r.revoked != nil || tag1 != nil && r.Tag1 != *tag1 {
					continue
				}
				tag := r.Tag1
				if tag1 != nil {
					tag = r.Tag2
				}
				u := want[tag]
				if u == nil {
					u = &use{agents: map[string]bool{}, raters: map[string]bool{}}
					want[tag] = u
				}
				u.ratings++
				u.agents[fmt.Sprint(w.chain.ID, r.TokenID.Dec())], u.raters[r.Client.Hex()] = true, true
				x := repute.Amount{Value: r.Value, Decimals: r.Decimals}.Decimal()
				if inside := !strings.HasPrefix(x, "-") && len(strings.Split(x, ".")[0]) <= 2; r.Tag1 == starred &&
					inside {
					u.scored++
				}
			}
		}
		f := statsdb.TagFilter{ChainIDs: c.chains, Tag1: tag1, Limit: 2,
			Scored: []statsdb.TagRange{{Tag: starred, Low: 0, High: 99.999999}}}
		last := int64(1 << 40)
		for {
			page, err := statsdb.Tags(ctx, db, f)
			ok(t, err)
			for _, tag := range page.Items {
				u := want[string(tag.Bytes)]
				if u == nil || tag.Ratings != u.ratings || tag.Agents != int64(len(u.agents)) ||
					tag.Raters != int64(len(u.raters)) ||
					tag.Scored != u.scored || tag.Ratings > last || tag.Hash != column.Keccak(string(tag.Bytes)) {
					t.Errorf("%q: %+v, want %+v", tag.Bytes, tag, u)
				}
				last = tag.Ratings
				delete(want, string(tag.Bytes))
			}
			if f.After = page.Next; f.After == "" {
				break
			}
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
	}
}

// TestStatsCursors: a cursor of another list or filter, and one that somebody made up, is refused.
func TestStatsCursors(t *testing.T) {
	t.Parallel()
	db, _ := twoWorlds(t, 89)
	ctx := context.Background()
	a := person(1)
	lists := map[string]func(after string, limit int) (string, error){
		"client": func(after string, limit int) (string, error) {
			p, err := query.FeedbackOf(ctx, db, a, query.ParticipantFilter{After: after, Limit: limit}, nil)
			return p.Next, err
		},
		"validations": func(after string, limit int) (string, error) {
			p, err := query.ValidationsOf(ctx, db, a, query.ParticipantFilter{After: after, Limit: limit}, nil)
			return p.Next, err
		},
		"validators": func(after string, limit int) (string, error) {
			p, err := statsdb.Validators(ctx, db, statsdb.ValidatorFilter{After: after, Limit: limit})
			return p.Next, err
		},
		"tags": func(after string, limit int) (string, error) {
			p, err := statsdb.Tags(ctx, db, statsdb.TagFilter{After: after, Limit: limit})
			return p.Next, err
		},
		"reviewers": func(after string, limit int) (string, error) {
			p, err := statsdb.Leaders(ctx, db,
				statsdb.LeaderFilter{By: statsdb.ByReviewers, After: after, Limit: limit})
			return p.Next, err
		},
		"growth": func(after string, limit int) (string, error) {
			p, err := statsdb.Leaders(ctx, db,
				statsdb.LeaderFilter{By: statsdb.ByGrowth, Period: time.Hour * 24 * 90, After: after, Limit: limit})
			return p.Next, err
		},
	}
	next := map[string]string{}
	for name, list := range lists {
		cursor, err := list("", 1)
		ok(t, err)
		if next[name] = cursor; cursor == "" {
			t.Fatalf("%s has one page", name)
		}
		for _, limit := range []int{0, -1, 201} {
			if _, err := list("", limit); wantField(err) != "limit" {
				t.Errorf("%s by %d: %v", name, limit, err)
			}
		}
	}
	for name, list := range lists {
		for other, cursor := range next {
			if _, err := list(cursor, 1); (wantField(err) == "cursor") != (name != other) {
				t.Errorf("%s with the cursor of %s: %v", name, other, err)
			}
		}
		for _, made := range []string{"%", "e30", "bm8", strings.Repeat("A", 5000)} {
			if _, err := list(made, 1); wantField(err) != "cursor" {
				t.Errorf("%s with %.20q: %v", name, made, err)
			}
		}
	}
	for field, f := range map[string]statsdb.LeaderFilter{"by": {By: "age", Limit: 1},
		"period":       {By: statsdb.ByGrowth, Limit: 1},
		"minReviewers": {By: statsdb.ByScore, MinReviewers: -1, Limit: 1}} {
		if _, err := statsdb.Leaders(ctx, db, f); wantField(err) != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestStatsAfterRewind: what a reorganization took back is in no list.
func TestStatsAfterRewind(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 91)
	w.mine(w.mint(person(0))...)
	kept := w.mine(w.rate(tokenID(0), person(1), w.amount(), "kept", "")...)
	w.mine(append(w.rate(tokenID(0), person(2), w.amount(), "gone", ""),
		repute.ValidationRequest{Validator: person(3), TokenID: tokenID(0)})...)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	ok(t, eventdb.Rewind(ctx, db, kept, eventdb.Batch{ChainID: 7, Parent: kept, To: kept}))
	tags, err := statsdb.Tags(ctx, db, statsdb.TagFilter{Limit: 9})
	ok(t, err)
	if len(tags.Items) != 1 || string(tags.Items[0].Bytes) != "kept" {
		t.Errorf("tags %+v", tags.Items)
	}
	gone, _, err := statsdb.Client(ctx, db, person(2), nil)
	ok(t, err)
	validators, err := statsdb.Validators(ctx, db, statsdb.ValidatorFilter{Limit: 9})
	ok(t, err)
	if len(gone) != 0 || len(validators.Items) != 0 {
		t.Errorf("%+v %+v", gone, validators.Items)
	}
	leaders, err := statsdb.Leaders(ctx, db, statsdb.LeaderFilter{By: statsdb.ByGrowth, Period: time.Hour, Limit: 9})
	ok(t, err)
	if len(leaders.Items) != 1 || leaders.Items[0].Value != 1 {
		t.Errorf("leaders %+v", leaders.Items)
	}
}
