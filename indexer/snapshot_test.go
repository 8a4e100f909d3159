package indexer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/indexer/archive"
	"repute/indexer/node"
	"repute/indexer/verify"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

func export(t *testing.T, db *store.DB, blocks repute.BlockRange) (string, archive.ExportResult) {
	t.Helper()
	var b bytes.Buffer
	result, err := archive.Export(t.Context(), db, 31337, blocks, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), result
}

func importSnapshot(t *testing.T, db *store.DB, snapshot string, o archive.SnapshotOptions) importdb.ImportResult {
	t.Helper()
	result, err := archive.ImportSnapshot(t.Context(), db, strings.NewReader(snapshot), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// snapshotOf follows a random history of n blocks, final up to the given one.
func snapshotOf(t *testing.T, n int, finalized uint64) (*world, *store.DB) {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	w := newWorld(c, 7)
	w.grow(n)
	c.Finalize(finalized, finalized)
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	return w, db
}

// run follows the chain by Run until the node's head is stored.
func runTo(t *testing.T, db *store.DB, c *rpctest.Chain) {
	t.Helper()
	f := NewFollower(db, chainOf(c), newNode(t, c, node.Options{}), Options{Poll: 1, RetryMin: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "the head is stored", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What is exported, imported and exported again is the same, and following on from
// there leads to the index of who followed from the start.
func TestSnapshotRoundTrip(t *testing.T) {
	t.Parallel()
	w, db := snapshotOf(t, 400, 360)
	snapshot, result := export(t, db, repute.BlockRange{})
	if !result.Whole || result.Blocks.From != 1 || result.Blocks.To != 360 || result.Events < 100 {
		t.Fatalf("export: %+v", result)
	}
	copied := openStore(t)
	var seen []archive.SnapshotProgress
	got := importSnapshot(t, copied, snapshot,
		archive.SnapshotOptions{Chunk: 50, Progress: func(p archive.SnapshotProgress) { seen = append(seen, p) }})
	if got.Events != result.Events || got.Duplicates != 0 || got.Pending != 0 {
		t.Errorf("import: %+v", got)
	}
	if n := len(seen); n < 2 || seen[n-1].Block != 360 || seen[n-1].Events != result.Events || seen[0].Block >= 360 {
		t.Errorf("progress: %+v", seen)
	}
	if again, _ := export(t, copied, repute.BlockRange{}); again != snapshot {
		t.Errorf("the second export differs:\n%.600s\n%.600s", again, snapshot)
	}
	if again := importSnapshot(t, copied, snapshot, archive.SnapshotOptions{Chunk: 33}); again.Events != 0 ||
		again.Duplicates != result.Events {
		t.Errorf("import again: %+v", again)
	}
	part := openStore(t)
	catchUpTo(t, part, w.Chain, 360)
	if dump(t, copied) != dump(t, part) {
		t.Error("the import differs from an index of the same blocks")
	}
	if s := status(t, copied); !unbroken(s) || !s.Imported {
		t.Errorf("status %+v", s)
	}
	w.grow(30)
	runTo(t, copied, w.Chain)
	if s := status(t, copied); s.Imported || !unbroken(s) || s.LastError != "" {
		t.Errorf("status after following on: %+v", s)
	}
	wantFresh(t, copied, w.Chain)
}

// catchUpTo indexes the chain up to block n.
func catchUpTo(t *testing.T, db *store.DB, c *rpctest.Chain, n uint64) {
	t.Helper()
	c.ServeHead(n)
	defer c.ServeAll()
	catchUp(t, follow(t, db, c, Options{}))
}

// An import that breaks off is completed by doing it again, and two parts make a
// whole.
func TestSnapshotInParts(t *testing.T) {
	t.Parallel()
	_, db := snapshotOf(t, 200, 180)
	snapshot, whole := export(t, db, repute.BlockRange{})
	lines := strings.SplitAfter(snapshot, "\n")
	copied := openStore(t)
	cut := strings.Join(lines[:len(lines)/2], "") + lines[len(lines)/2][:40]
	for _, broken := range []string{cut, strings.Join(lines[:len(lines)/2], "")} {
		_, err := archive.ImportSnapshot(t.Context(), copied, strings.NewReader(broken),
			archive.SnapshotOptions{Chunk: 10})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "line ") ||
			!strings.Contains(err.Error(), "cut short") {
			t.Fatalf("a snapshot cut short: %v", err)
		}
	}
	if s := status(t, copied); s.Agents == 0 || s.Completeness.Status == "" {
		t.Errorf("nothing was stored of a snapshot cut short: %+v", s)
	}
	importSnapshot(t, copied, snapshot, archive.SnapshotOptions{})
	if again, _ := export(t, copied, repute.BlockRange{}); again != snapshot {
		t.Error("the completed import differs")
	}

	low, first := export(t, db, repute.BlockRange{To: 90})
	high, second := export(t, db, repute.BlockRange{From: 91})
	if second.Whole || first.Events+second.Events != whole.Events {
		t.Errorf("parts: %+v and %+v of %+v", first, second, whole)
	}
	for name, parts := range map[string][2]string{"in order": {low, high}, "reversed": {high, low}} {
		joined := openStore(t)
		for _, part := range parts {
			importSnapshot(t, joined, part, archive.SnapshotOptions{})
		}
		if dump(t, joined) != dump(t, copied) {
			t.Errorf("%s: two parts make another index", name)
		}
		if s := status(t, joined); !unbroken(s) {
			t.Errorf("%s: %+v", name, s.Completeness)
		}
	}
}

// replaceAddress gives a log's line the address of a stranger.
func replaceAddress(line string) string {
	const before = `{"address":"0x`
	return before + strings.Repeat("a", 40) + line[len(before)+40:]
}

// changed is a log's line with something else in it.
func changed(t *testing.T, line string, change func(*types.Log)) string {
	t.Helper()
	var l types.Log
	if err := json.Unmarshal([]byte(line), &l); err != nil {
		t.Fatal(err)
	}
	change(&l)
	raw, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

// twinOf finds a line whose log is of the same block as the one before.
func twinOf(t *testing.T, lines []string) int {
	t.Helper()
	block := func(i int) (n uint64) {
		changed(t, lines[i], func(l *types.Log) { n = l.BlockNumber })
		return n
	}
	for i := 2; i < len(lines)-2; i++ {
		if block(i) == block(i-1) {
			return i
		}
	}
	t.Fatal("every block has one log")
	return 0
}

func TestSnapshotRefuses(t *testing.T) {
	t.Parallel()
	_, db := snapshotOf(t, 60, 50)
	snapshot, _ := export(t, db, repute.BlockRange{})
	lines := strings.SplitAfter(snapshot, "\n")
	n := len(lines) - 1 // the last one is empty
	swap := func(i, j int) string {
		l := append([]string{}, lines...)
		l[i], l[j] = l[j], l[i]
		return strings.Join(l, "")
	}
	other := chainOf(rpctest.New(t, rpctest.Options{}))
	other.ID = 5
	twin := twinOf(t, lines)
	for name, c := range map[string]struct {
		snapshot string
		chain    *repute.Chain
		says     string
	}{
		"another chain":  {snapshot, &other, "not of chain 5"},
		"another format": {strings.Replace(snapshot, "events/1", "events/9", 1), nil, "format"},
		"no header":      {strings.Join(lines[1:], ""), nil, "line 1"},
		"empty":          {"", nil, "cut short"},
		"a log missing":  {strings.Join(append(append([]string{}, lines[:3]...), lines[4:]...), ""), nil, "announced"},
		"out of order":   {swap(2, n-2), nil, "out of order"},
		"not a log":      {strings.Replace(snapshot, lines[3], "{\"topics\":7}\n", 1), nil, "line 4: not a log"},
		"HTML":           {strings.Replace(snapshot, lines[3], "<html>\n", 1), nil, "line 4"},
		"outside": {strings.Replace(snapshot, `"blockRange":{"from":1,"to":50}`, `"blockRange":{"from":1,"to":9}`,
			1), nil, "within blockRange"},
		"two hashes": {strings.Replace(snapshot, lines[twin],
			changed(t, lines[twin], func(l *types.Log) { l.BlockHash[0]++ }), 1), nil,
			fmt.Sprintf("line %d: block", twin+1)},
		"two times": {strings.Replace(snapshot, lines[twin],
			changed(t, lines[twin], func(l *types.Log) { l.BlockTimestamp++ }), 1), nil, "has time"},
		"foreign address": {strings.Replace(snapshot, lines[3], replaceAddress(lines[3]), 1), nil,
			"no event of these registries"},
	} {
		fresh := openStore(t)
		_, err := archive.ImportSnapshot(t.Context(), fresh, strings.NewReader(c.snapshot),
			archive.SnapshotOptions{Chain: c.chain})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
	if _, err := archive.ImportSnapshot(t.Context(), db, strings.NewReader(snapshot),
		archive.SnapshotOptions{}); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("into a followed chain: %v", err)
	}
}

// Only what was imported whole, and is of the node's chain, is followed on.
func TestAdoptionIsChecked(t *testing.T) {
	t.Parallel()
	w, db := snapshotOf(t, 120, 100)
	snapshot, _ := export(t, db, repute.BlockRange{})
	part, _ := export(t, db, repute.BlockRange{From: 40})
	c := w.Chain

	partly := openStore(t)
	importSnapshot(t, partly, part, archive.SnapshotOptions{})
	f := NewFollower(partly, chainOf(c), newNode(t, c, node.Options{}), Options{})
	if err := f.Run(t.Context()); !errors.Is(err, repute.ErrConflict) ||
		!strings.Contains(err.Error(), "without blocks 1 to 39,") || strings.HasSuffix(err.Error(), "conflict") {
		t.Errorf("a part: %v", err)
	}

	other := openStore(t)
	importSnapshot(t, other, snapshot, archive.SnapshotOptions{})
	w.fork(50, 100) // the imported blocks are not the node's
	f = NewFollower(other, chainOf(c), newNode(t, c, node.Options{}), Options{})
	if err := f.Run(t.Context()); !errors.Is(err, repute.ErrConflict) || !strings.Contains(err.Error(), "at the node") {
		t.Errorf("another chain: %v", err)
	}
	if s := status(t, other); !s.Imported || !strings.Contains(s.LastError, "at the node") {
		t.Errorf("status: imported %v, error %q", s.Imported, s.LastError)
	}
}

// A node that is behind the snapshot is waited for.
func TestAdoptionWaitsForTheNode(t *testing.T) {
	t.Parallel()
	w, db := snapshotOf(t, 120, 100)
	snapshot, _ := export(t, db, repute.BlockRange{})
	copied := openStore(t)
	importSnapshot(t, copied, snapshot, archive.SnapshotOptions{})
	w.ServeHead(60)
	f := NewFollower(copied, chainOf(w.Chain), newNode(t, w.Chain, node.Options{}),
		Options{Poll: 1, RetryMin: 1, RetryMax: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "it says why it waits", func() bool {
		err := f.Ready()
		return err != nil && strings.Contains(err.Error(), "the node's head is 60")
	})
	w.ServeAll()
	eventually(t, "the head is stored", func() bool { return cursorOf(t, copied).Hash == w.Head().Hash() })
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantFresh(t, copied, w.Chain)
}

// What an index knows to be missing, an import of its snapshot knows too.
func TestSnapshotCarriesGaps(t *testing.T) {
	t.Parallel()
	_, db := snapshotOf(t, 60, 50)
	token, client := rpctest.Token(0), rpctest.Account(9)
	gaps := []chaindb.Gap{
		{Subject: "0/0xabc", Gap: repute.Gap{Kind: repute.KindNewFeedback, Blocks: repute.BlockRange{From: 20, To: 30},
			Reason: "missing"}},
		{Subject: "later", Gap: repute.Gap{Kind: repute.KindNewFeedback, Blocks: repute.BlockRange{From: 55, To: 60},
			Reason: "above the last block"}}}
	gaps[0].Agent, gaps[0].Client = &token, &client
	if err := chaindb.OpenGaps(t.Context(), db, 31337, store.Lease{}, gaps); err != nil {
		t.Fatal(err)
	}
	snapshot, result := export(t, db, repute.BlockRange{})
	if result.Whole || result.Missing != 1 {
		t.Errorf("%+v", result)
	}
	other := openStore(t)
	importSnapshot(t, other, snapshot, archive.SnapshotOptions{Chunk: 5})
	if c := status(t, other).Completeness; c.Status != repute.Incomplete {
		t.Errorf("an import of what is incomplete is %s", c.Status)
	}
	due, err := chaindb.DueGaps(t.Context(), other, 31337, 10)
	if err != nil || len(due) != 1 || due[0].Subject != gaps[0].Subject || *due[0].Agent != token ||
		*due[0].Client != client || due[0].Blocks != gaps[0].Blocks {
		t.Errorf("%+v, %v", due, err)
	}
	if again, _ := export(t, other, repute.BlockRange{}); again != snapshot {
		t.Error("the second export differs")
	}
	part, _ := export(t, db, repute.BlockRange{From: 1, To: 10})
	third := openStore(t)
	importSnapshot(t, third, part, archive.SnapshotOptions{})
	if c := status(t, third).Completeness; c.Status != repute.Verifying {
		t.Errorf("blocks without a gap are %s", c.Status)
	}
}

// The events of a contract that the snapshot's writer did not list are owed, whether
// it is listed by who imports or by who follows on.
func TestSnapshotOwesHistory(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""), judged(c, 1, 80))
	c.MineEmpty(5)
	c.Finalize(5, 5)
	listed, unlisted := chainOf(c), chainOf(c)
	unlisted.Validations = nil
	db := openStore(t)
	if err := chaindb.AddChain(t.Context(), db, unlisted); err != nil {
		t.Fatal(err)
	}
	catchUp(t, NewFollower(db, unlisted, newNode(t, c, node.Options{}), Options{}))
	snapshot, _ := export(t, db, repute.BlockRange{})
	for name, as := range map[string]*repute.Chain{"imported as listed": &listed, "listed by the follower": nil} {
		other := openStore(t)
		importSnapshot(t, other, snapshot, archive.SnapshotOptions{Chain: as})
		runTo(t, other, c)
		due, err := chaindb.DueGaps(t.Context(), other, 31337, 10)
		if err != nil || len(due) != 2 || !strings.HasPrefix(due[0].Subject, chaindb.HistorySubject) ||
			due[0].Blocks.From != 1 || due[0].Blocks.To < 5 {
			t.Errorf("%s: %+v, %v", name, due, err)
		}
		settleAll(t, other, listed, newNode(t, c, node.Options{}))
		if found := validations(t, other, c); found[c.Validation] != 1 {
			t.Errorf("%s: read later: %v", name, found)
		}
	}
}

// settleAll verifies until nothing is to do.
func settleAll(t *testing.T, db *store.DB, c repute.Chain, n *node.Node) {
	t.Helper()
	v := verify.New(db, c, func() []*node.Node { return []*node.Node{n} }, verify.Options{Rate: 1e6})
	for range 2_000 {
		switch err := v.Step(t.Context(), store.Lease{}); {
		case errors.Is(err, verify.ErrNothingNew):
			return
		case err != nil:
			t.Fatalf("verify: %v", err)
		}
	}
	t.Fatal("no end after 2,000 steps")
}
