package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
	"repute/store/searchdb"
)

// A denial of a document that many agents show marks all agents of the chains that have any. A chain that is indexed
// for its treasuries alone has none, and no engine would ever take its marks.
func TestDenialMarksChainsWithRegistries(t *testing.T) {
	t.Parallel()
	const url = "https://x/shared"
	db, _ := queue(t, url)
	share(t, db, url, 100, 1500)
	ok(t, chaindb.WatchTreasury(ctxOf(t), db, 8, repute.WatchedContract{Address: common.Address{8}, From: 1}))
	read(t, db, claim(t, db, "")[url], "shared", nil)
	sqlExec(t, db, "delete from trust_marks")
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenySHA256, Reason: "r",
		Value: fmt.Sprintf("%x", sha256.Sum256([]byte("shared")))}, false))
	var marked []int64
	ok(t, db.Pool().QueryRow(ctxOf(t), "select array_agg(chain_id) from trust_marks where every").Scan(&marked))
	if !slices.Equal(marked, []int64{7}) {
		t.Errorf("marks for chains %v, want 7 alone", marked)
	}
}

// An operator sees how much a denial is about, and gets dropped bytes back.
func TestDenialReach(t *testing.T) {
	t.Parallel()
	const url = "https://bad.example/0"
	db, w := queue(t, url, url, "data:,x")
	atHost(t, db, "bad.example")
	read(t, db, claim(t, db, "bad.example")[url], "both", nil)
	read(t, db, claim(t, db, "")["data:,x"], "mine", nil)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("mine")))
	for _, c := range []struct {
		kind  repute.DenyKind
		value string
		want  denydb.Reach
	}{
		{repute.DenyHost, "Bad.Example.", denydb.Reach{Agents: 2, Documents: 1}},
		{repute.DenyAgent, "7:0", denydb.Reach{Agents: 1, Documents: 1}},
		{repute.DenyAgent, "7:99", denydb.Reach{}},
		{repute.DenySHA256, sum, denydb.Reach{Agents: 1, Documents: 1}},
		{repute.DenySHA256, strings.Repeat("0", 64), denydb.Reach{}},
	} {
		if got, err := denydb.DenialReach(t.Context(), db, repute.Denial{Kind: c.kind, Value: c.value}); err != nil ||
			got != c.want {
			t.Errorf("%s %s: %+v, %v, want %+v", c.kind, c.value, got, err, c.want)
		}
	}
	ok(t, denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenySHA256, Value: sum, Reason: "r"}, true))
	ok(t, denydb.Undeny(t.Context(), db, repute.DenySHA256, sum))
	if d := documentOf(t, db, w.id(2)); d.NextTry.IsZero() {
		t.Errorf("dropped and allowed again, but not due: %+v", d)
	}
	if s, err := docdb.CountSelected(t.Context(), db,
		docdb.RetryFilter{Agents: []repute.AgentID{w.id(2)}}); err != nil || s != (docdb.Selected{URIs: 1, Due: 1}) {
		t.Errorf("selected %+v, %v", s, err)
	}
	if s, err := docdb.CountSelected(t.Context(), db, docdb.RetryFilter{Host: "nosuch.example"}); err != nil ||
		s != (docdb.Selected{}) {
		t.Errorf("selected of no host %+v, %v", s, err)
	}
}

// What is not there is told from what came later, and from what cannot be.
func TestMissing(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "", "https://x/1")
	_, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{ChainIDs: []uint64{1}, Limit: 1})
	var missing *repute.MissingError
	if !errors.As(err, &missing) || missing.Error() != "chain 1 is not indexed" || missing.Hint == "" {
		t.Errorf("agents of no chain: %v", err)
	}
	a, _, err := query.Agent(t.Context(), db, w.id(1), repute.At{Finality: repute.Latest})
	ok(t, err)
	_, _, err = query.Agent(t.Context(), db, w.id(1), repute.At{Block: a.Registered.Block - 1})
	if want := fmt.Sprintf("agent 7:1 did not exist at block %d", a.Registered.Block-1); !errors.As(err, &missing) ||
		missing.Error() != want {
		t.Errorf("before it was registered: %v, want %s", err, want)
	}
	if _, err = query.RequestRefresh(t.Context(), db, w.id(0)); !errors.As(err, &missing) ||
		missing.Error() != "agent 7:0 has no URI on chain" {
		t.Errorf("refresh of no URI: %v", err)
	}
	save(t, db, docdb.FetchResult{URIID: claim(t, db, "")["https://x/1"].ID, FetchedAt: fetched,
		Reason: "http_disabled",
		Dead:   true})
	if _, err = query.RequestRefresh(t.Context(), db, w.id(1)); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("refresh of what cannot be read: %v", err)
	}
}
