package read

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute/internal/rpctest"
	"repute/trust/source"
)

// asked collects the ranges of logs that an endpoint is asked for.
func (w *world) asked() (ranges func() [][2]uint64) {
	var seen [][2]uint64
	w.Inject(rpctest.On("eth_getLogs", func(c rpctest.Call) *rpctest.Answer {
		from, to, _ := rpctest.Range(c)
		w.set(func() { seen = append(seen, [2]uint64{from, to}) })
		return nil
	}))
	return func() (out [][2]uint64) {
		w.set(func() { out, seen = seen, nil })
		return out
	}
}

// The logs about a rater are read once. Then new blocks alone are asked for, also by a process that has just started.
func TestLogsAreReadOnce(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	book := s.Home(8453).Contracts["book"].Address
	ranges := w.asked()
	r := w.reader(8453)
	first := one(t, r, 8453, at(w.Head()), s, addresses(9), source.Past{})
	if got := ranges(); !slices.Equal(got, [][2]uint64{{0, 10}}) {
		t.Errorf("asked for %v", got)
	}
	w.MineEmpty(5)
	w.Mine([]types.Log{bound(book, numbered(2), 1002)}) // renewed by the same person
	past := source.Past{States: []source.State{first.State}, Credentials: first.Credentials}
	var whole source.Reading
	for name, c := range map[string]struct {
		reader *Reader
		past   source.Past
		want   [][2]uint64
	}{
		"the same process":        {r, source.Past{}, [][2]uint64{{11, 16}, {0, 16}}},
		"started anew":            {w.reader(8453), past, [][2]uint64{{11, 16}, {0, 16}}},
		"another machine, at all": {w.reader(8453), source.Past{}, [][2]uint64{{0, 16}}},
	} {
		now := one(t, c.reader, 8453, at(w.Head()), s, addresses(10), c.past)
		want(t, now, source.StatusOK)
		if got := ranges(); !slices.Equal(got, c.want) {
			t.Errorf("%s asks for %v, want %v", name, got, c.want)
		}
		if whole.Credentials == nil {
			whole = now
		}
		if !same(now.Credentials, whole.Credentials) || len(now.Credentials) != 10 {
			t.Errorf("%s finds other credentials: %+v", name, now.Credentials)
		}
	}
	if c := whole.Credentials[2]; c.Renewed != w.Head().Header.Time || c.Issued != w.Blocks()[3].Header.Time {
		t.Errorf("renewed: %+v", c)
	}
}

// Endpoints that answer for few blocks at a time are asked for few, and what was read stays read where a later span
// fails.
func TestLogsInSpans(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	w.MineEmpty(200)
	undo := w.Inject(rpctest.LimitRange(20, rpctest.Error{Code: -32005, Message: "query exceeds max block range 20"}))
	r := w.reader(8453)
	late := w.Inject(rpctest.On("eth_getLogs", func(c rpctest.Call) *rpctest.Answer {
		if _, to, _ := rpctest.Range(c); to > 100 && to < 150 {
			return &rpctest.Answer{Error: &rpctest.Error{Code: -32601, Message: "the method does not exist"}}
		}
		return nil
	}))
	failed := one(t, r, 8453, at(w.Head()), s, addresses(12), source.Past{})
	want(t, failed, source.StatusIncomplete, "does not exist")
	late()
	ranges := w.asked()
	again := one(t, r, 8453, at(w.Head()), s, addresses(12), source.Past{})
	want(t, again, source.StatusOK)
	if got := ranges(); len(again.Credentials) != 10 || len(got) == 0 || got[0][0] < 80 {
		t.Errorf("%d credentials, asked for %v", len(again.Credentials), got)
	}
	undo()
}

// attestations is a world whose registry of EAS has no indexer.
func attestations(t *testing.T) (*world, *source.Source, func(event, uid string, rater common.Address) types.Log) {
	text := string(source.DefaultFile())
	text = strings.ReplaceAll(text,
		"          indexer: {address: \"0x2c7eE1E5f416dfF40054c27A62f7B357C4E8619C\", implementations: [first-seen]}\n", "")
	p, err := source.Parse([]byte(strings.ReplaceAll(text, "      eas:\n", "      eas:\n        logs: true\n")))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Source("coinbase-account")
	w := newWorld(t, 8453)
	e := s.Read.EAS
	registry := s.Home(8453).Contracts["registry"].Address
	recipients := map[common.Hash]common.Hash{}
	w.put(registry, map[string]func(common.Hash) (bool, []byte){
		"getAttestation(bytes32)": func(uid common.Hash) (bool, []byte) {
			out := word(32)
			for _, x := range []common.Hash{uid, e.Schema.ID, common.BytesToHash(word(1_600_000_000)), {}, {}, {},
				recipients[uid],
				hashOf(e.Attester[0]), common.BytesToHash(word(1))} {
				out = append(out, x[:]...)
			}
			return true, slices.Concat(out, word(320), word(0))
		}})
	return w, s, func(event, uid string, rater common.Address) types.Log {
		id := crypto.Keccak256Hash([]byte(uid))
		w.set(func() { recipients[id] = hashOf(rater) })
		return types.Log{Address: registry, Data: id[:], Topics: []common.Hash{
			crypto.Keccak256Hash([]byte(event + "(address,address,bytes32,bytes32)")), hashOf(rater),
			hashOf(e.Attester[0]), e.Schema.ID}}
	}
}

// Ten thousand attestations for one address are one credential, which the latest that is not revoked gives; one that is
// revoked between two readings is gone.
func TestManyAttestationsByLogs(t *testing.T) {
	t.Parallel()
	w, s, log := attestations(t)
	for block := range 10 {
		var logs []types.Log
		for i := range 1000 {
			logs = append(logs, log("Attested", string(rune(1000*block+i+1)), numbered(1)))
		}
		w.Mine(logs)
	}
	w.Mine([]types.Log{log("Attested", "single", numbered(2)), log("Revoked", string(rune(10_000)), numbered(1))})
	r := w.reader(8453)
	first := one(t, r, 8453, at(w.Head()), s, addresses(4), source.Past{})
	want(t, first, source.StatusOK)
	if len(first.Credentials) != 2 ||
		first.Credentials[0].Subject != crypto.Keccak256Hash([]byte(string(rune(9_999)))) ||
		first.Credentials[0].Issued != 1_600_000_000 {
		t.Fatalf("%+v", first.Credentials)
	}
	w.Mine([]types.Log{log("Revoked", "single", numbered(2))})
	for name, r := range map[string]*Reader{"the same process": r, "started anew": w.reader(8453)} {
		past := source.Past{States: []source.State{first.State}, Credentials: first.Credentials}
		now := one(t, r, 8453, at(w.Head()), s, addresses(4), past)
		if len(now.Credentials) != 1 || now.Credentials[0].Subject != first.Credentials[0].Subject {
			t.Errorf("%s: %+v", name, now.Credentials)
		}
	}
}

// A source without calls is read by its logs alone.
func TestPaidByLogs(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("farcaster-pro")
	w := newWorld(t, 8453)
	tiers := s.Home(8453).Contracts["tiers"].Address
	w.put(tiers, nil)
	paid := func(payer common.Address, days uint64) types.Log {
		return types.Log{Address: tiers, Data: word(days), Topics: []common.Hash{
			crypto.Keccak256Hash([]byte("PurchasedTier(uint256,uint256,uint256,address)")), common.BytesToHash(word(7)),
			common.BytesToHash(word(1)), hashOf(payer)}}
	}
	w.Mine([]types.Log{paid(numbered(1), 365), paid(numbered(2), 30)})
	w.MineEmpty(3)
	r := one(t, w.reader(8453), 8453, at(w.Head()), s, addresses(4), source.Past{})
	want(t, r, source.StatusOK)
	if len(r.Credentials) != 1 || r.Credentials[0].Rater != numbered(1) ||
		r.Credentials[0].Issued != w.Blocks()[1].Header.Time || w.Calls("eth_call") != 0 {
		t.Errorf("%+v", r.Credentials)
	}
}

// A reading that may not ask for all logs goes on where the one before ended. Raters whose credential is known count
// meanwhile, and only those whose logs are unread are unknown.
func TestScanGoesOnAtTheNextReading(t *testing.T) {
	t.Parallel()
	w, s, _ := booked(t)
	first := one(t, w.reader(8453), 8453, at(w.Head()), s, addresses(5), source.Past{})
	want(t, first, source.StatusOK)
	w.MineEmpty(150)
	w.Inject(rpctest.LimitRange(4, rpctest.Error{Code: -32005, Message: "query exceeds max block range 4"}))
	r := w.reader(8453)
	r.limits.spans = 60
	past := source.Past{States: []source.State{first.State}, Credentials: first.Credentials}
	readings := 0
	for ; readings < 10; readings++ {
		w.MineEmpty(2)
		now := one(t, r, 8453, at(w.Head()), s, addresses(12), past)
		if now.Status == source.StatusOK {
			if len(now.Credentials) != 10 || len(now.Unknown) != 0 ||
				now.Credentials[9].Issued != w.Blocks()[10].Header.Time {
				t.Errorf("%d credentials, %d unknown", len(now.Credentials), len(now.Unknown))
			}
			break
		}
		want(t, now, source.StatusIncomplete, "not read up to the epoch's end yet")
		if !slices.Equal(now.Unknown, addresses(10)[5:]) || len(now.Credentials) != 5 {
			t.Errorf("reading %d: %d credentials, unknown %s", readings, len(now.Credentials), now.Unknown)
		}
	}
	if readings == 0 || readings == 10 {
		t.Errorf("all is read after %d readings", readings)
	}
}

// The time for the logs of one source is a part of the time for all.
func TestLogsLeaveTimeForOthers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if left := time.Until(newAllowance(ctx, 1).until); left > 21*time.Minute || left < 15*time.Minute {
		t.Errorf("%s of an hour", left)
	}
	ended, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	if newAllowance(ended, 5).take(1) || !newAllowance(t.Context(), 5).take(5) || newAllowance(t.Context(), 5).take(6) {
		t.Error("more is asked for than allowed, or less")
	}
}

// Spans begin with any number of blocks. An endpoint with a limit refuses few requests, and where the limit is of logs
// the spans become longer again.
func TestPace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dense := rapid.Uint64Range(1, 100).Draw(t, "limit at first")
		sparse := dense * rapid.Uint64Range(1, 1000).Draw(t, "factor")
		hint := rapid.SampledFrom([]uint64{0, dense}).Draw(t, "hint")
		var p pace
		requests, refusals, blocks := 0, 0, uint64(0)
		const end = 100_000
		for from := uint64(0); from <= end; {
			r, limit := p.span(from, end), dense
			if from > end/100 {
				limit = sparse
			}
			if r.From != from || r.To < from || r.To > end {
				t.Fatalf("%+v from %d", r, from)
			}
			requests++
			if r.To-r.From+1 > limit {
				refusals++
				p.refused(r, min(hint, limit))
				continue
			}
			p.answered(r)
			blocks, from = blocks+r.To-r.From+1, r.To+1
		}
		if blocks != end+1 || refusals > 40+requests/minPatience {
			t.Fatalf("%d blocks by %d requests, %d refused", blocks, requests, refusals)
		}
		if most := 200 + int(4*(end/100/dense+end/sparse)) + maxPatience*10; requests > most {
			t.Fatalf("%d requests, want at most %d", requests, most)
		}
	})
}

// More logs about one rater than are kept make that rater unknown, and nobody else.
func TestTooManyLogsOfOneRater(t *testing.T) {
	t.Parallel()
	w, s, log := attestations(t)
	var logs []types.Log
	for i := range 40 {
		logs = append(logs, log("Attested", string(rune(i+1)), numbered(1)))
	}
	w.Mine(append(logs, log("Attested", "single", numbered(2))))
	r := w.reader(8453)
	r.limits.signs = 30
	for range 2 {
		w.MineEmpty(1)
		now := one(t, r, 8453, at(w.Head()), s, addresses(4), source.Past{})
		want(t, now, source.StatusIncomplete, "more than 30 logs", numbered(1).Hex())
		if !slices.Equal(now.Unknown, []common.Address{numbered(1)}) || len(now.Credentials) != 1 ||
			now.Credentials[0].Rater != numbered(2) {
			t.Errorf("unknown %s, %+v", now.Unknown, now.Credentials)
		}
	}
}

// requests counts all that an endpoint was asked for.
func (w *world) requests() (n int) {
	for _, m := range []string{"eth_chainId", "eth_blockNumber", "eth_getBlockByNumber", "eth_getBlockByHash",
		"eth_call",
		"eth_getCode", "eth_getStorageAt", "eth_getLogs"} {
		n += w.Calls(m)
	}
	return n
}

// 100,000 raters of a source that is read by logs alone take fewer than 200 requests of any kind, at the first reading
// and at the next. Logs about others say nothing of them.
func TestNumberOfRequestsByLogs(t *testing.T) {
	t.Parallel()
	s := shipped(t).Source("farcaster-pro")
	w := newWorld(t, 8453)
	tiers := s.Home(8453).Contracts["tiers"].Address
	w.put(tiers, nil)
	var logs []types.Log
	for i := range 3_000 { // two of three are about nobody who is asked about
		logs = append(logs, types.Log{Address: tiers, Data: word(365), Topics: []common.Hash{
			crypto.Keccak256Hash([]byte("PurchasedTier(uint256,uint256,uint256,address)")), common.BytesToHash(word(7)),
			common.BytesToHash(word(1)), hashOf(numbered(50_000 * i))}})
		if len(logs) == 300 {
			w.Mine(logs)
			logs = nil
		}
	}
	w.MineEmpty(3)
	r := w.reader(8453)
	for range 2 {
		before := w.requests()
		got := one(t, r, 8453, at(w.Head()), s, addresses(100_000), source.Past{})
		want(t, got, source.StatusOK)
		if n := w.requests() - before; len(got.Credentials) != 2 || n == 0 || n >= 200 {
			t.Errorf("%d credentials by %d requests", len(got.Credentials), n)
		}
		w.MineEmpty(1)
	}
}

// heldNames is a source for which any name that an address owns counts.
func heldNames(t *testing.T) *source.Source {
	t.Helper()
	p, err := source.Parse([]byte(`
version: "1"
multicall: "0xcA11bde05977b3631167028862bE2a173976CA11"
classes: {A: &c {weight: 0.1, praise: 1, blame: 1}, B: *c, C: *c}
all: {praise: 1, blame: 1}
budget: {agents: 20, days: 90}
sources:
  - id: names
    version: 1
    name: Name
    issuer: the test
    meaning: owns a name
    class: C
    weight: 0.1
    maturityDays: 365
    bounds: {praise: 1, blame: 0.5}
    homes: [{chain: 8453, contracts: {registrar: {address: "0x03c4738ee98ae44591e1a4a4f3cab6641d95dd9a"}}}]
    read:
      calls: [{contract: registrar, function: balanceOf(address) returns (uint256 names), arguments: [rater],
        holds: [{value: names, notZero: true}]}]
      events:
        - &gained
          contract: registrar
          event: Transfer(address indexed from, address indexed to, uint256 indexed tokenId)
          rater: to
          person: tokenId
          means: issued
        - {<<: *gained, rater: from, means: revoked}
`))
	if err != nil {
		t.Fatal(err)
	}
	return p.Source("names")
}

// The logs of a contract that are read for many raters say the same as those that are read for few.
func TestManyRatersFindTheSame(t *testing.T) {
	t.Parallel()
	s := heldNames(t)
	w := newWorld(t, 8453)
	registrar := s.Home(8453).Contracts["registrar"].Address
	w.put(registrar, map[string]func(common.Hash) (bool, []byte){
		"balanceOf(address)": func(common.Hash) (bool, []byte) { return true, word(1) }})
	for name := range 6 {
		moved := func(from, to int) types.Log {
			return types.Log{Address: registrar,
				Topics: []common.Hash{crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)")),
					hashOf(numbered(from)), hashOf(numbered(to)), common.BytesToHash(word(uint64(name)))}}
		}
		w.Mine([]types.Log{moved(name+5_000, name)}) // from an address that is not asked about
		w.Mine([]types.Log{moved(name, (name+1)%6)})
	}
	w.MineEmpty(3)
	few := one(t, w.reader(8453), 8453, at(w.Head()), s, addresses(6), source.Past{})
	many := one(t, w.reader(8453), 8453, at(w.Head()), s, addresses(maxNamed+1), source.Past{})
	if len(few.Credentials) != 6 || !same(few.Credentials, many.Credentials[:min(6, len(many.Credentials))]) {
		t.Errorf("%d and %d credentials: %+v", len(few.Credentials), len(many.Credentials), many.Credentials)
	}
}
