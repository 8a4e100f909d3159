package store_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/searchdb"
)

// pageOf is a page of agents as any list's.
func pageOf(found searchdb.Found, err error) (store.Page[repute.Agent], error) {
	return found.Page, err
}

// collect pages a list to its end.
func collect[T any](t *testing.T, fetch func(after string) (store.Page[T], error)) []T {
	t.Helper()
	var out []T
	after := ""
	for range 1000 {
		page, err := fetch(after)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Items...)
		if page.Next == "" {
			return out
		}
		after = page.Next
	}
	t.Fatal("the list has no end")
	return nil
}

func agentIDs(agents []repute.Agent) []string {
	out := make([]string, len(agents))
	for i, a := range agents {
		out[i] = a.ID.Short()
	}
	return out
}

// threeChains holds chains of different length, one of them imported-like small.
func threeChains(t *testing.T) (*store.DB, []*world) {
	t.Helper()
	db := open(t)
	worlds := []*world{newWorld(1, 50, 11), newWorld(10, 7, 12), newWorld(8453, 900, 13)}
	for i, w := range worlds {
		w.grow(30 + 40*i)
		w.store(t, db, w.tip().Number)
	}
	return db, worlds
}

// TestAgentPagesAreTheWholeList goes through the list in every order and with
// every page size, and expects each agent once and in order.
func TestAgentPagesAreTheWholeList(t *testing.T) {
	t.Parallel()
	db, worlds := threeChains(t)
	ctx := context.Background()
	var all []repute.Agent
	for _, w := range worlds {
		for token := range w.agents {
			a, _, err := query.Agent(ctx, db, w.id(token), latest)
			if err != nil {
				t.Fatal(err)
			}
			a.Metadata, a.MetadataCount = nil, 0 // not in lists
			all = append(all, a)
		}
	}
	orders := map[string]func(a, b repute.Agent) int{
		query.SortID:       func(a, b repute.Agent) int { return 0 },
		query.SortFeedback: func(a, b repute.Agent) int { return cmp.Compare(a.Counts.Feedback, b.Counts.Feedback) },
		query.SortUpdated:  func(a, b repute.Agent) int { return a.Updated.Time.Compare(b.Updated.Time) },
	}
	for name, order := range orders {
		for _, desc := range []bool{false, true} {
			want := slices.Clone(all)
			slices.SortFunc(want, func(a, b repute.Agent) int {
				c := cmp.Or(order(a, b), cmp.Compare(a.ID.ChainID, b.ID.ChainID), a.ID.TokenID.Cmp(&b.ID.TokenID))
				if desc {
					return -c
				}
				return c
			})
			for _, limit := range []int{1, 2, 3, 7, len(all) - 1, len(all), store.MaxPage} {
				got := collect(t, func(after string) (store.Page[repute.Agent], error) {
					return pageOf(searchdb.Agents(ctx, db,
						searchdb.AgentFilter{Sort: name, Desc: desc, Limit: limit, After: after}))
				})
				if !reflect.DeepEqual(agentIDs(got), agentIDs(want)) {
					t.Fatalf("%s desc=%v by %d:\n got %v\nwant %v", name, desc, limit, agentIDs(got), agentIDs(want))
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s desc=%v by %d: the list's agents are not those that Agent gives", name, desc, limit)
				}
			}
		}
	}
}

// TestTokenIDsOfAnySize pages over ids that no machine word holds.
func TestTokenIDsOfAnySize(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 1)
	ids := []string{"0", "9", "10", "18446744073709551615", "18446744073709551616", "100000000000000000000",
		"1000000000000000000000000000000",
		"115792089237316195423570985008687907853269984665640564039457584007913129639935"}
	for _, s := range ids {
		token, err := repute.ParseTokenID(s)
		if err != nil {
			t.Fatal(err)
		}
		w.mine(repute.Transfer{To: person(1), TokenID: token})
	}
	w.store(t, db, w.tip().Number)
	for _, limit := range []int{1, 3, 50} {
		for _, desc := range []bool{false, true} {
			var got []string
			for _, a := range collect(t, func(after string) (store.Page[repute.Agent], error) {
				return pageOf(searchdb.Agents(context.Background(), db,
					searchdb.AgentFilter{Limit: limit, Desc: desc, After: after}))
			}) {
				got = append(got, a.ID.TokenID.Dec())
			}
			if desc {
				slices.Reverse(got)
			}
			if !slices.Equal(got, ids) {
				t.Errorf("by %d, desc %v: %v", limit, desc, got)
			}
		}
	}
}

func TestAgentFilters(t *testing.T) {
	t.Parallel()
	db, _ := threeChains(t)
	ctx := context.Background()
	everyone := collect(t, func(after string) (store.Page[repute.Agent], error) {
		return pageOf(searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 50, After: after}))
	})
	none := common.Address{}
	for i := range 7 {
		who := person(i)
		for name, f := range map[string]searchdb.AgentFilter{
			"owner":        {Owner: &who},
			"wallet":       {Wallet: &who},
			"no wallet":    {Wallet: &none},
			"both":         {Owner: &who, Wallet: &who},
			"chain":        {ChainIDs: []uint64{10}},
			"chains owner": {ChainIDs: []uint64{10, 1}, Owner: &who},
		} {
			for _, sort := range []string{query.SortID, query.SortFeedback, query.SortUpdated} {
				f.Sort, f.Limit = sort, 3
				got := agentIDs(collect(t, func(after string) (store.Page[repute.Agent], error) {
					f.After = after
					return pageOf(searchdb.Agents(ctx, db, f))
				}))
				var want []string
				for _, a := range everyone {
					if (f.Owner == nil || a.Owner == *f.Owner) && (f.Wallet == nil || a.Wallet == *f.Wallet) &&
						(f.ChainIDs == nil || slices.Contains(f.ChainIDs, a.ID.ChainID)) {
						want = append(want, a.ID.Short())
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s by %s: %v, want %v", name, sort, got, want)
				}
			}
		}
	}
	if _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{ChainIDs: []uint64{1, 2}, Limit: 1}); !errors.Is(err,
		repute.ErrNotFound) {
		t.Errorf("an unknown chain gave %v", err)
	}
}

// TestAgentPagesWhileAgentsArrive adds agents and feedback between pages: none
// that was there from the beginning is missed or shown twice.
func TestAgentPagesWhileAgentsArrive(t *testing.T) {
	t.Parallel()
	db, worlds := threeChains(t)
	ctx := context.Background()
	before := agentIDs(collect(t, func(after string) (store.Page[repute.Agent], error) {
		return pageOf(searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 50, After: after}))
	}))
	for _, desc := range []bool{false, true} {
		seen := map[string]int{}
		for _, id := range agentIDs(collect(t, func(after string) (store.Page[repute.Agent], error) {
			for _, w := range worlds {
				w.grow(1)
				w.store(t, db, w.tip().Number)
			}
			return pageOf(searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 3, After: after, Desc: desc}))
		})) {
			seen[id]++
			if seen[id] > 1 {
				t.Errorf("%s is shown twice", id)
			}
		}
		for _, id := range before {
			if seen[id] == 0 {
				t.Errorf("%s is missed", id)
			}
		}
	}
}

// TestLoadersAgreeWithLists compares what is loaded for many agents at once
// with what is listed for each.
func TestLoadersAgreeWithLists(t *testing.T) {
	t.Parallel()
	db, worlds := threeChains(t)
	ctx := context.Background()
	var ids []repute.AgentID
	for _, w := range worlds {
		for token := range w.agents {
			ids = append(ids, w.id(token))
		}
	}
	ids = append(ids, ids[0], repute.AgentID{ChainID: 1, TokenID: tokenID(9999)}, repute.AgentID{ChainID: 99})
	const limit = 3
	agents, err1 := query.AgentsByID(ctx, db, ids)
	feedback, err2 := query.FeedbackByAgents(ctx, db, ids, limit)
	validations, err3 := query.ValidationsByAgents(ctx, db, ids, limit)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if len(agents) != len(ids)-3 {
		t.Errorf("%d agents for %d ids", len(agents), len(ids))
	}
	for _, id := range ids[:len(ids)-2] {
		a, _, err1 := query.Agent(ctx, db, id, latest)
		f, err2 := query.Feedback(ctx, db, id, query.FeedbackFilter{Limit: limit, At: latest})
		v, err3 := query.Validations(ctx, db, id, query.ValidationFilter{Limit: limit, At: latest})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		a.Metadata, a.MetadataCount = nil, 0 // not in lists
		if !reflect.DeepEqual(agents[id], a) || !sameItems(feedback[id].Items, f.Items) ||
			!sameItems(validations[id].Items, v.Items) ||
			feedback[id].More != (f.Next != "") || validations[id].More != (v.Next != "") {
			t.Errorf("%s: loaded is not what is listed", id.Short())
		}
	}
}

// sameItems compares lists of which one may be nil and the other empty.
func sameItems[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

func TestValidationsMatchRecords(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 31)
	w.grow(150)
	tip := w.tip().Number
	w.store(t, db, tip)
	trusted, pending := 0, 0
	for token := range w.agents {
		id := w.id(token)
		for _, n := range []uint64{w.mintBlock(id.TokenID), (w.mintBlock(id.TokenID) + tip) / 2, tip} {
			for _, f := range []query.ValidationFilter{{Limit: 2}, {Limit: 1, TrustedOnly: true},
				{Limit: store.MaxPage}} {
				f.At = at(n)
				got := collect(t, func(after string) (store.Page[repute.Validation], error) {
					f.After = after
					return query.Validations(context.Background(), db, id, f)
				})
				want := w.naiveValidations(id, n, f.TrustedOnly)
				for i := range got { // files are TestFilesAreJudged's
					got[i].RequestFile = nil
					if got[i].Answered != nil {
						got[i].Answered.File = nil
					}
				}
				if !sameItems(got, want) {
					t.Fatalf("agent %d at %d:\n got %+v\nwant %+v", token, n, got, want)
				}
				for _, v := range got {
					if v.ContractTrusted {
						trusted++
					}
					if v.Answered == nil {
						pending++
					}
				}
			}
		}
	}
	if trusted == 0 || pending == 0 {
		t.Errorf("the made-up chain has %d trusted and %d pending validations", trusted, pending)
	}
}

// naiveValidations reads them out of the records, newest first.
func (w *world) naiveValidations(id repute.AgentID, n uint64, trustedOnly bool) []repute.Validation {
	var out []repute.Validation
	for _, r := range w.records {
		if r.Log.BlockNumber > n {
			break
		}
		switch e := r.Event.(type) {
		case repute.ValidationRequest:
			trusted := r.Log.Address == trustedOne
			if e.TokenID == id.TokenID && (trusted || !trustedOnly) {
				out = append(out, repute.Validation{
					ChainID: id.ChainID, Contract: r.Log.Address, ContractTrusted: trusted, RequestHash: e.RequestHash,
					Agent: id, Validator: e.Validator, RequestURI: e.URI, Requested: pointOf(r),
				})
			}
		case repute.ValidationResponse:
			for i := range out {
				if out[i].RequestHash == e.RequestHash {
					out[i].Answers++
					out[i].Answered = &repute.ValidationAnswer{Response: e.Response, URI: e.URI, Hash: e.ResponseHash,
						Tag: e.Tag,
						At:  pointOf(r)}
				}
			}
		}
	}
	slices.Reverse(out)
	return out
}

// TestPastEqualsAnIndexThatEndsThere compares answers at a block with the
// newest ones of an index that has nothing behind that block.
func TestPastEqualsAnIndexThatEndsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(7, 100, 41)
	w.grow(100)
	full, past := open(t), open(t)
	w.store(t, full, w.tip().Number)
	ctx := context.Background()
	for n := w.chain.StartBlock; n <= w.tip().Number; n += 7 {
		w.store(t, past, n)
		for token := range w.agents {
			id := w.id(token)
			want, wantAsOf, err := query.Agent(ctx, past, id, latest)
			got, asOf, gotErr := query.Agent(ctx, full, id, at(n))
			if errors.Is(err, repute.ErrNotFound) && errors.Is(gotErr, repute.ErrNotFound) {
				continue
			}
			if err := errors.Join(err, gotErr); err != nil {
				t.Fatal(err)
			}
			// Each index queued the document by its own clock.
			got.Document.NextTry, want.Document.NextTry = time.Time{}, time.Time{}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("agent %d at %d:\n got %+v\nwant %+v", token, n, got, want)
			}
			asOf.Block.Parent = common.Hash{}
			if asOf.Block != wantAsOf.Block {
				t.Fatalf("block %+v, want %+v", asOf.Block, wantAsOf.Block)
			}
			wantRep, err1 := query.ReadReputation(ctx, past, id, query.ReputationQuery{At: latest})
			gotRep, err2 := query.ReadReputation(ctx, full, id, query.ReputationQuery{At: at(n)})
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			gotRep.AsOf, wantRep.AsOf = repute.AsOf{}, repute.AsOf{}
			gotRep.Independence.Clusters = wantRep.Independence.Clusters // who owns what is as of now at any view
			if !reflect.DeepEqual(gotRep, wantRep) {
				t.Fatalf("reputation of %d at %d:\n got %+v\nwant %+v", token, n, gotRep, wantRep)
			}
		}
	}
}

func TestCursorsAndLimitsAreChecked(t *testing.T) {
	t.Parallel()
	db, worlds := threeChains(t)
	ctx := context.Background()
	id := worlds[2].id(0)
	page, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("first page: %v, next %q", err, page.Next)
	}
	owner := person(1)
	for name, call := range map[string]func() error{
		"other sort": func() error {
			_, err := searchdb.Agents(ctx, db,
				searchdb.AgentFilter{Limit: 1, After: page.Next, Sort: query.SortFeedback})
			return err
		},
		"other order": func() error {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, After: page.Next, Desc: true})
			return err
		},
		"other owner": func() error {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, After: page.Next, Owner: &owner})
			return err
		},
		"other list": func() error {
			_, err := query.Feedback(ctx, db, id, query.FeedbackFilter{Limit: 1, After: page.Next, At: latest})
			return err
		},
		"no base64": func() error {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, After: "%"})
			return err
		},
		"no json": func() error {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, After: "abcd"})
			return err
		},
		"cut": func() error {
			_, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, After: page.Next[:len(page.Next)-3]})
			return err
		},
	} {
		if field := wantField(call()); field != "cursor" {
			t.Errorf("%s: the error names %q", name, field)
		}
	}
	for _, limit := range []int{-1, 0, store.MaxPage + 1} {
		_, err1 := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: limit})
		_, err2 := query.Feedback(ctx, db, id, query.FeedbackFilter{Limit: limit, At: latest})
		_, err3 := query.Validations(ctx, db, id, query.ValidationFilter{Limit: limit, At: latest})
		_, err4 := query.FeedbackByAgents(ctx, db, nil, limit)
		for i, err := range []error{err1, err2, err3, err4} {
			if wantField(err) != "limit" {
				t.Errorf("limit %d, list %d: %v", limit, i, err)
			}
		}
	}
	if _, err := searchdb.Agents(ctx, db, searchdb.AgentFilter{Limit: 1, Sort: "name"}); wantField(err) != "sort" {
		t.Errorf("an unknown sort gave %v", err)
	}
	if _, err := query.Feedback(ctx, db, id,
		query.FeedbackFilter{Limit: 1, Order: "best", At: latest}); wantField(err) != "order" {
		t.Errorf("an unknown order gave %v", err)
	}
	if strings.ContainsAny(page.Next, "+/=&") {
		t.Errorf("cursor %q needs escaping", page.Next)
	}
}
