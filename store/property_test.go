package store_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/contracts"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// Whatever happened on the way to a chain, the index of it is the same: as that
// of a fresh index, as after a reindex, as the contracts' own state, and as what
// a reader of the changes has put together.
func TestIndexDoesNotDependOnHistory(t *testing.T) {
	db := testDB(t)
	var chains atomic.Uint64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f := follower{db: db, chain: chains.Add(1), ledger: newLedger(), since: newestChange(t, ctx, db)}
		ok(t, chaindb.AddChain(ctx, db, testChain(f.chain)))
		for range rapid.IntRange(1, 7).Draw(t, "steps") {
			f.step(ctx, t)
		}
		got := dump(t, ctx, db, f.chain)
		checkModel(t, got, f.ledger)
		if wrong := wrongTotals(ctx, t, db, f.chain); len(wrong) > 0 {
			t.Fatalf("totals that do not follow from the events: %+v", wrong)
		}
		checkReplay(t, got, readChanges(t, ctx, db, f.since), f.chain)

		fresh := chains.Add(1)
		ok(t, chaindb.AddChain(ctx, db, testChain(fresh)))
		if len(f.ledger.blocks) > 0 {
			ok(t, eventdb.Apply(ctx, db, batchOf(fresh, f.ledger.genesis, f.ledger.blocks)))
		}
		equalDumps(t, "fresh index", got, dump(t, ctx, db, fresh))
		ok(t, importdb.Reindex(ctx, db, f.chain, contracts.Read))
		equalDumps(t, "reindex", got, dump(t, ctx, db, f.chain))
	})
}

// follower plays the indexer.
type follower struct {
	db        *store.DB
	chain     uint64
	ledger    *ledger
	finalized uint64
	since     string
}

func (f *follower) step(ctx context.Context, t *rapid.T) {
	switch action := rapid.IntRange(0, 9).Draw(t, "step"); {
	case action < 6:
		f.grow(ctx, t)
	case action < 9:
		f.reorganize(ctx, t)
	default:
		f.finalize(ctx, t)
	}
}

func (f *follower) grow(ctx context.Context, t *rapid.T) {
	from := len(f.ledger.blocks)
	parent := f.ledger.head()
	for range rapid.IntRange(1, 4).Draw(t, "blocks") {
		f.ledger.mine(t)
	}
	var batches []eventdb.Batch
	for from < len(f.ledger.blocks) {
		n := from + rapid.IntRange(1, len(f.ledger.blocks)-from).Draw(t, "split")
		batches = append(batches, batchOf(f.chain, parent, f.ledger.blocks[from:n]))
		from, parent = n, f.ledger.blocks[n-1].Block
	}
	for i, b := range batches {
		if i+1 < len(batches) && rapid.Bool().Draw(t, "ahead") {
			batches[i+1].Prefetched = prefetch(ctx, t, f.db, &batches[i+1], b.Records)
		}
		ok(t, eventdb.Apply(ctx, f.db, b))
	}
}

func (f *follower) reorganize(ctx context.Context, t *rapid.T) {
	head := f.ledger.head().Number
	lowest := max(f.finalized, f.ledger.genesis.Number)
	if head == lowest {
		return
	}
	f.ledger.fork(uint64(rapid.IntRange(int(lowest), int(head)-1).Draw(t, "ancestor")))
	ancestor, from := f.ledger.head(), len(f.ledger.blocks)
	for range rapid.IntRange(0, 3).Draw(t, "replacements") {
		f.ledger.mine(t)
	}
	ok(t, eventdb.Rewind(ctx, f.db, ancestor, batchOf(f.chain, ancestor, f.ledger.blocks[from:])))
}

func (f *follower) finalize(ctx context.Context, t *rapid.T) {
	head := f.ledger.head().Number
	if head <= max(f.finalized, f.ledger.genesis.Number) {
		return
	}
	f.finalized = uint64(rapid.IntRange(int(max(f.finalized, f.ledger.genesis.Number)), int(head)).Draw(t, "finalized"))
	ok(t, chaindb.SetHead(ctx, f.db, f.chain, store.Lease{},
		chaindb.Head{Head: head, Safe: f.finalized, Finalized: f.finalized, SeenAt: time.Now()}))
}

func equalDumps(t failer, what, a, b string) {
	t.Helper()
	if a == b {
		return
	}
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			t.Fatalf("%s differs at line %d:\n%s\n%s", what, i, left[i], right[i])
		}
	}
	t.Fatalf("%s has %d lines instead of %d", what, len(right), len(left))
}

func unhex(s string) string {
	b, err := hex.DecodeString(s)
	if err != nil {
		return "not hex: " + s
	}
	return string(b)
}

// checkModel compares the dump with the contracts' state, at the head and, for
// what has a history, at every block.
func checkModel(t failer, dumped string, l *ledger) {
	t.Helper()
	s := l.state()
	agents := rows(t, dumped, "agents")
	if len(agents) != len(s.agents) {
		t.Fatalf("%d agents, not %d", len(agents), len(s.agents))
	}
	for i, a := range agents {
		checkAgent(t, a, s, i)
	}
	checkTotals(t, dumped, s)
	states, keys, spans := rows(t, dumped, "agent_states"), rows(t, dumped, "metadata"), rows(t, dumped, "operators")
	for _, b := range l.blocks {
		equal(t, fmt.Sprintf("states at %d", b.Number), statesAt(states, b.Number), b.after.summary())
		equal(t, fmt.Sprintf("metadata at %d", b.Number), metadataAt(keys, b.Number), b.after.metadata())
		equal(t, fmt.Sprintf("operators at %d", b.Number), operatorsAt(spans, b.Number), b.after.operating())
	}
}

func equal(t failer, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%s:\n%q\nnot\n%q", what, got, want)
	}
}

func checkAgent(t failer, r row, s *state, id int) {
	t.Helper()
	var live, revoked, clients, responses, validations uint64
	for key, ratings := range s.ratings {
		if key.token != uint64(id) {
			continue
		}
		liveOfPair := uint64(0)
		for _, g := range ratings {
			responses += uint64(g.responses)
			if g.revoked {
				revoked++
			} else {
				liveOfPair++
			}
		}
		if live += liveOfPair; liveOfPair > 0 {
			clients++
		}
	}
	for q, v := range s.requests {
		if q.contract == registries.Validation && v.token == uint64(id) && v.answered {
			validations++
		}
	}
	got := [...]uint64{r.num("feedback"), r.num("revoked"), r.num("clients"), r.num("responses"), r.num("validations")}
	want := [...]uint64{live, revoked, clients, responses, validations}
	if r.str("agent") != strconv.Itoa(id) || got != want || r["claimed"] != false {
		t.Fatalf("agent %d: %v, not %v: %v", id, got, want, r)
	}
}

// checkTotals adds up live feedback naively.
func checkTotals(t failer, dumped string, s *state) {
	t.Helper()
	type total struct {
		n   int64
		sum big.Int
	}
	totals, votes := map[string]*total{}, map[string]string{}
	for p, ratings := range s.ratings {
		for i, g := range ratings {
			if g.revoked {
				continue
			}
			key := fmt.Sprintf("%d %x %x %x %d", p.token, p.client, g.tag1, g.tag2, g.decimals)
			if totals[key] == nil {
				totals[key] = new(total)
			}
			totals[key].n++
			totals[key].sum.Add(&totals[key].sum, g.value)
			votes[fmt.Sprintf("%d %x %x", p.token, p.client, g.tag1)] = fmt.Sprintf("%d %s %d", i+1, g.value,
				g.decimals)
		}
	}
	want, sums, got := map[string]string{}, map[string]string{}, map[string]string{}
	for key, v := range totals {
		want[key] = fmt.Sprintf("%d %s", v.n, &v.sum)
	}
	for _, r := range rows(t, dumped, "sums") {
		sums[fmt.Sprintf("%s %s %s %s %d", r.str("agent"), r.str("client"), r.str("tag1"), r.str("tag2"),
			r.num("decimals"))] = fmt.Sprintf("%d %s", r.num("n"), r.str("sum"))
	}
	for _, r := range rows(t, dumped, "votes") {
		got[fmt.Sprintf("%s %s %s", r.str("agent"), r.str("client"), r.str("tag1"))] = fmt.Sprintf("%d %s %d",
			r.num("index"), r.str("value"), r.num("decimals"))
	}
	equal(t, "sums", sums, want)
	equal(t, "votes", got, votes)
}

func address(a common.Address) string {
	if a == nobody {
		return ""
	}
	return hex.EncodeToString(a[:])
}

func (s *state) summary() map[string]string {
	out := map[string]string{}
	for i, a := range s.agents {
		out[strconv.Itoa(i)] = strings.Join([]string{address(a.owner), address(a.wallet), address(a.approved),
			a.uri}, "|")
	}
	return out
}

func (s *state) metadata() map[string]string {
	out := map[string]string{}
	for i, a := range s.agents {
		for k, v := range a.metadata {
			out[fmt.Sprintf("%d %x", i, k)] = v
		}
	}
	return out
}

func (s *state) operating() map[string]string {
	out := map[string]string{}
	for k, on := range s.operators {
		if on {
			out[address(k[0])+address(k[1])] = "on"
		}
	}
	return out
}

// holds says whether a history row holds at block n.
func (r row) holds(n uint64) bool {
	return r.num("from") <= n && (r["to"] == nil || n < r.num("to"))
}

func statesAt(states []row, n uint64) map[string]string {
	out := map[string]string{}
	for _, r := range states {
		if r.holds(n) {
			out[r.str("agent")] = strings.Join([]string{r.str("owner"), r.str("wallet"), r.str("approved"),
				unhex(r.str("uri"))}, "|")
		}
	}
	return out
}

func metadataAt(keys []row, n uint64) map[string]string {
	out := map[string]string{}
	for _, r := range keys {
		if r.holds(n) {
			out[r.str("agent")+" "+r.str("key")] = unhex(r.str("value"))
		}
	}
	return out
}

func operatorsAt(spans []row, n uint64) map[string]string {
	out := map[string]string{}
	for _, r := range spans {
		if r.holds(n) {
			out[r.str("owner")+r.str("operator")] = "on"
		}
	}
	return out
}

// replay is what a reader of the feed knows.
type replay struct {
	agents   map[string]*replayed
	feedback map[string]string // live
	metadata map[string]string
}

type replayed struct{ owner, wallet, approved, uri string }

// checkReplay drops what was retracted, plays the rest in chain order and
// compares with the tables.
func checkReplay(t failer, dumped string, changes []store.Change, chainID uint64) {
	t.Helper()
	gone := map[string]bool{}
	for _, c := range changes {
		gone[c.Retracts] = true
	}
	changes = slices.DeleteFunc(changes, func(c store.Change) bool {
		return gone[c.Cursor] || c.Retracts != "" ||
			c.ChainID != chainID
	})
	slices.SortStableFunc(changes, func(a, b store.Change) int {
		if a.Block != b.Block {
			return int(a.Block) - int(b.Block)
		}
		return int(a.LogIndex) - int(b.LogIndex)
	})
	r := replay{map[string]*replayed{}, map[string]string{}, map[string]string{}}
	for _, c := range changes {
		r.play(t, c)
	}
	got, want := map[string]string{}, map[string]string{}
	for id, a := range r.agents {
		got[id] = strings.Join([]string{a.owner, a.wallet, a.approved, a.uri}, "|")
	}
	for _, a := range rows(t, dumped, "agents") {
		want[a.str("agent")] = strings.Join([]string{a.str("owner"), a.str("wallet"), a.str("approved"),
			unhex(a.str("uri"))}, "|")
	}
	equal(t, "replayed agents", got, want)
	want = map[string]string{}
	for _, f := range rows(t, dumped, "feedback") {
		if f["revoked_block"] == nil {
			want[fmt.Sprintf("%s %s %d", f.str("agent"), f.str("client"), f.num("index"))] =
				fmt.Sprintf("%s %d %s %s %s", f.str("value"), f.num("decimals"), unhex(f.str("tag1")),
					unhex(f.str("tag2")),
					unhex(f.str("uri")))
		}
	}
	equal(t, "replayed feedback", r.feedback, want)
	equal(t, "replayed metadata", r.metadata, metadataAt(rows(t, dumped, "metadata"), ^uint64(0)))
}

// changeData has the members of all kinds that the replay needs.
type changeData struct {
	Owner, Wallet, Approved, Client *common.Address
	URI, Key, Value, Tag1, Tag2     json.RawMessage
	Index                           uint64
	Decimals                        uint8
}

// text reads {"text":…} or {"hex":…}, or a plain string.
func text(t failer, raw json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var o struct {
		Text *string
		Hex  string
		Size int
	}
	ok(t, json.Unmarshal(raw, &o))
	if o.Size != 0 {
		t.Fatalf("a short string was cut: %s", raw)
	}
	if o.Text != nil {
		return *o.Text
	}
	return unhex(strings.TrimPrefix(o.Hex, "0x"))
}

func optional(a *common.Address) string {
	if a == nil {
		return ""
	}
	return address(*a)
}

func (r *replay) play(t failer, c store.Change) {
	t.Helper()
	if c.TokenID == nil {
		return
	}
	id := c.TokenID.Dec()
	if r.agents[id] == nil {
		r.agents[id] = &replayed{}
	}
	a := r.agents[id]
	if strings.HasPrefix(c.Kind, "validation.") {
		if *a == (replayed{}) {
			delete(r.agents, id) // of a foreign contract, before there is an agent
		}
		return
	}
	var d changeData
	ok(t, json.Unmarshal(c.Data, &d))
	switch c.Kind {
	case "agent.transferred":
		a.owner, a.wallet, a.approved = optional(d.Owner), optional(d.Wallet), optional(d.Approved)
	case "agent.registered":
		if d.URI != nil {
			a.uri = text(t, d.URI)
		}
	case "agent.uri":
		a.uri = text(t, d.URI)
	case "agent.wallet":
		a.wallet = optional(d.Wallet)
	case "agent.approval":
		a.approved = optional(d.Approved)
	case "agent.metadata":
		r.metadata[fmt.Sprintf("%s %x", id, text(t, d.Key))] = text(t, d.Value)
	case "feedback.given":
		r.feedback[fmt.Sprintf("%s %x %d", id, *d.Client, d.Index)] =
			fmt.Sprintf("%s %d %s %s %s", text(t, d.Value), d.Decimals, text(t, d.Tag1), text(t, d.Tag2),
				text(t, d.URI))
	case "feedback.revoked":
		delete(r.feedback, fmt.Sprintf("%s %x %d", id, *d.Client, d.Index))
	}
}
