package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/rootdb"
	"repute/store/scoredb"
)

func TestRootsAreKept(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	end := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	one := repute.TrustRoot{Address: person(1), Weight: repute.RootUnit, Reason: "an auditor"}
	two := repute.TrustRoot{Address: person(2), Weight: 500_000, Reason: "a market", Expires: end}
	ok(t, rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, []repute.TrustRoot{two, one}, false))
	ok(t, rootdb.AddRoots(ctx, db, 7, "mine", []repute.TrustRoot{two}, false))
	sameRoots(t, db, 7, repute.DefaultRoots, one, two)
	sameRoots(t, db, 8, repute.DefaultRoots)

	one.Weight, one.Reason = 3*repute.RootUnit, "two auditors"
	ok(t, rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots,
		[]repute.TrustRoot{{Address: one.Address, Weight: 1, Reason: "earlier"}, one}, false))
	sameRoots(t, db, 7, repute.DefaultRoots, one, two)
	ok(t, rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, []repute.TrustRoot{one}, true))
	sameRoots(t, db, 7, repute.DefaultRoots, one)
	sameRoots(t, db, 7, "mine", two)

	sets, err := rootdb.RootSets(ctx, db)
	ok(t, err)
	if !slices.Equal(sets, []rootdb.RootSet{{ChainID: 7, Name: repute.DefaultRoots, Roots: 1},
		{ChainID: 7, Name: "mine", Roots: 1}}) {
		t.Errorf("sets: %v", sets)
	}
	ok(t, rootdb.RemoveRoot(ctx, db, 7, "mine", two.Address))
	if err := rootdb.RemoveRoot(ctx, db, 7, "mine", two.Address); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	sameRoots(t, db, 7, "mine")
}

func sameRoots(t *testing.T, db *store.DB, chainID uint64, set string, want ...repute.TrustRoot) {
	t.Helper()
	got, err := rootdb.Roots(ctxOf(t), db, chainID, set)
	ok(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("set %s of %d: %v, not %v", set, chainID, got, want)
	}
}

// What is bad changes nothing, whatever good stands beside it.
func TestBadRoots(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	good := repute.TrustRoot{Address: person(1), Weight: 1, Reason: "r"}
	for field, bad := range map[string]repute.TrustRoot{
		"address":  {Weight: 1, Reason: "r"},
		"weight":   {Address: person(2), Reason: "r"},
		"weight:":  {Address: person(2), Weight: rootdb.MaxRootWeight + 1, Reason: "r"},
		"reason":   {Address: person(2), Weight: 1, Reason: " "},
		"reason:":  {Address: person(2), Weight: 1, Reason: strings.Repeat("x", rootdb.MaxReason+1)},
		"reason: ": {Address: person(2), Weight: 1, Reason: "a\x00b"},
	} {
		err := rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, []repute.TrustRoot{good, bad}, true)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != strings.TrimRight(field, ": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"", "Mine", "a b", strings.Repeat("x", 41), "-x"} {
		if err := rootdb.AddRoots(ctx, db, 7, name, []repute.TrustRoot{good}, false); !errors.Is(err,
			repute.ErrInvalid) {
			t.Errorf("set %q: %v", name, err)
		}
	}
	many := make([]repute.TrustRoot, 10_000+1)
	for i := range many {
		many[i] = repute.TrustRoot{Address: person(i), Weight: 1, Reason: "r"}
	}
	if err := rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, many, false); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("too many: %v", err)
	}
	sameRoots(t, db, 7, repute.DefaultRoots)
}

func TestLinksAreKept(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	low, high := common.Address{1}, common.Address{2}
	link := repute.TrustLink{A: low, B: high, Reason: "one funder", Source: "https://example.com/1"}
	ok(t, rootdb.AddLinks(ctx, db, 7,
		[]repute.TrustLink{{A: high, B: low, Reason: "one funder", Source: "https://example.com/1"}}, false))
	sameLinks(t, db, link)
	link.Reason = "one key"
	ok(t, rootdb.AddLinks(ctx, db, 7, []repute.TrustLink{link}, false))
	sameLinks(t, db, link)
	for _, bad := range []repute.TrustLink{{A: low, B: low, Reason: "r", Source: "s"},
		{A: low, Reason: "r", Source: "s"},
		{A: low, B: high, Source: "s"}, {A: low, B: high, Reason: "r"}} {
		if err := rootdb.AddLinks(ctx, db, 7, []repute.TrustLink{bad}, true); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	sameLinks(t, db, link)
	ok(t, rootdb.AddLinks(ctx, db, 7, nil, true))
	sameLinks(t, db)
}

func sameLinks(t *testing.T, db *store.DB, want ...repute.TrustLink) {
	t.Helper()
	got, err := rootdb.Links(ctxOf(t), db, 7)
	ok(t, err)
	if !slices.Equal(got, want) {
		t.Errorf("links: %v, not %v", got, want)
	}
}

func TestTrustInputs(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	hash, err := scoredb.KeepInput(ctx, db, []byte("a set"))
	ok(t, err)
	again, err := scoredb.KeepInput(ctx, db, []byte("a set"))
	ok(t, err)
	body, err := scoredb.ReadInput(ctx, db, hash)
	if err != nil || again != hash || string(body) != "a set" {
		t.Errorf("%s, %s: %q, %v", hash, again, body, err)
	}
	if _, err := scoredb.ReadInput(ctx, db, common.Hash{1}); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an input that never was: %v", err)
	}
}

// A check sees the whole set as it would be, and its error keeps all of it as it was.
func TestChecksOfRoots(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	one := repute.TrustRoot{Address: person(1), Weight: 1, Reason: "r"}
	two := repute.TrustRoot{Address: person(2), Weight: 1, Reason: "r"}
	ok(t, rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, []repute.TrustRoot{one}, false))
	refused := errors.New("refused")
	for _, replace := range []bool{false, true} {
		seen := 0
		err := rootdb.AddRoots(ctx, db, 7, repute.DefaultRoots, []repute.TrustRoot{two}, replace,
			func(set []repute.TrustRoot) error { seen = len(set); return refused })
		if want := map[bool]int{false: 2, true: 1}[replace]; !errors.Is(err, refused) || seen != want {
			t.Errorf("replace %v: %v, the check saw %d roots, want %d", replace, err, seen, want)
		}
	}
	sameRoots(t, db, 7, repute.DefaultRoots, one)
}
