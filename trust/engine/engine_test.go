package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/explain"
)

var (
	identity   = common.HexToAddress("0x1d")
	reputation = common.HexToAddress("0x2e")
	validation = common.HexToAddress("0x3f")
	gateway    = common.HexToAddress("0x4a")
)

const (
	people = 24
	rooted = 8 // the first of them are roots
)

func person(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xc0de00 + n))) }

func token(n uint64) (id repute.TokenID) {
	id.SetUint64(n)
	return id
}

// ledger is a chain of made-up blocks that can be cut and go on otherwise.
type ledger struct {
	chain  repute.Chain
	rng    *rand.Rand
	blocks []mined
	forks  int
	later  time.Duration // that the blocks to be mined are later
}

type mined struct {
	repute.Block
	records []repute.Record
	after   state
}

// state is what decides which events the registries could emit next.
type state struct {
	owners []common.Address
	given  map[string]uint64 // ratings by agent and client
	asked  []common.Hash
	byAsk  []uint64
	gone   map[string]bool // ratings that were revoked
}

func (s state) clone() state {
	c := state{append([]common.Address(nil), s.owners...), map[string]uint64{}, append([]common.Hash(nil), s.asked...),
		append([]uint64(nil), s.byAsk...), maps.Clone(s.gone)}
	for k, v := range s.given {
		c.given[k] = v
	}
	return c
}

func newLedger(seed uint64) *ledger {
	return &ledger{rng: rand.New(rand.NewPCG(seed, 1)), chain: repute.Chain{ID: 9, Name: "nine", Identity: identity,
		Reputation:  reputation,
		Validations: []common.Address{validation}, StartBlock: 1}}
}

func (l *ledger) tip() repute.Block {
	if len(l.blocks) == 0 {
		return repute.Block{}
	}
	return l.blocks[len(l.blocks)-1].Block
}

func (l *ledger) state() state {
	if len(l.blocks) == 0 {
		return state{given: map[string]uint64{}, gone: map[string]bool{}}
	}
	return l.blocks[len(l.blocks)-1].after.clone()
}

// fork forgets everything above a block.
func (l *ledger) fork(above uint64) {
	l.blocks = l.blocks[:above]
	l.forks++
}

// mine adds a block with these events.
func (l *ledger) mine(s state, events ...repute.Event) {
	parent := l.tip()
	b := mined{Block: repute.Block{Number: parent.Number + 1, Parent: parent.Hash}, after: s}
	b.Hash = common.BytesToHash(fmt.Appendf(nil, "block %d/%d", b.Number, l.forks))
	b.Time = time.Unix(1_750_000_000+60*int64(b.Number), 0).Add(l.later).UTC()
	tx := 0
	for i, e := range events {
		address := identity
		if _, isTicket := e.(repute.TicketConsumed); !isTicket { // which is of the transaction of the event before it
			tx = i
		}
		switch e.(type) {
		case repute.TicketConsumed:
			address = gateway
		case repute.NewFeedback, repute.FeedbackRevoked, repute.ResponseAppended:
			address = reputation
		case repute.ValidationRequest, repute.ValidationResponse:
			address = validation
		}
		b.records = append(b.records,
			repute.Record{Event: e, Time: b.Time,
				Log: types.Log{Address: address, Topics: topics(e), BlockNumber: b.Number,
					BlockHash: b.Hash,
					Index:     uint(i), TxIndex: uint(tx),
					TxHash: common.BytesToHash(fmt.Appendf(nil, "tx %d/%d/%d", b.Number, tx, l.forks))}})
	}
	l.blocks = append(l.blocks, b)
}

// topics are those of the events that tell who did what with an agent.
func topics(e repute.Event) []common.Hash {
	word := func(a common.Address) common.Hash { return common.BytesToHash(a[:]) }
	switch e := e.(type) {
	case repute.TicketConsumed:
		return []common.Hash{{}, e.TicketID, word(e.Payer), e.TokenID.Bytes32(), word(e.Agent), e.FeedbackHash}
	case repute.Transfer:
		return []common.Hash{{}, word(e.From), word(e.To), e.TokenID.Bytes32()}
	case repute.Registered:
		return []common.Hash{{}, e.TokenID.Bytes32(), word(e.Owner)}
	case repute.URIUpdated:
		return []common.Hash{{}, e.TokenID.Bytes32(), word(e.UpdatedBy)}
	case repute.MetadataSet:
		return []common.Hash{{}, e.TokenID.Bytes32(), crypto.Keccak256Hash([]byte(e.Key))}
	case repute.Approval:
		return []common.Hash{{}, word(e.Owner), word(e.Approved), e.TokenID.Bytes32()}
	}
	return nil
}

// grow mines n blocks of what comes to mind.
func (l *ledger) grow(n int) {
	for range n {
		s := l.state()
		var events []repute.Event
		for range l.rng.IntN(4) {
			events = append(events, l.event(&s)...)
		}
		l.mine(s, events...)
	}
}

func (l *ledger) event(s *state) []repute.Event {
	if len(s.owners) < 3 || l.rng.IntN(12) == 0 {
		return s.mint(person(rooted + l.rng.IntN(6)))
	}
	agent := l.rng.IntN(len(s.owners))
	id, owner := token(uint64(agent)), s.owners[agent]
	switch l.rng.IntN(14) {
	case 0:
		to := person(l.rng.IntN(people))
		s.owners[agent] = to
		return []repute.Event{repute.MetadataSet{TokenID: id, Key: "agentWallet"},
			repute.Transfer{From: owner, To: to, TokenID: id}}
	case 1:
		return []repute.Event{repute.MetadataSet{TokenID: id, Key: "agentWallet",
			Value: person(l.rng.IntN(people)).Bytes()}}
	case 2:
		return []repute.Event{repute.ApprovalForAll{Owner: owner, Operator: person(l.rng.IntN(people)),
			Approved: l.rng.IntN(2) == 0}}
	case 3:
		hash := common.BytesToHash(fmt.Appendf(nil, "ask %d/%d", len(s.asked), l.forks))
		s.asked, s.byAsk = append(s.asked, hash), append(s.byAsk, uint64(agent))
		return []repute.Event{repute.ValidationRequest{Validator: person(l.rng.IntN(people)), TokenID: id,
			RequestHash: hash}}
	case 4:
		if len(s.asked) == 0 {
			return nil
		}
		i := l.rng.IntN(len(s.asked))
		return []repute.Event{repute.ValidationResponse{Validator: person(1), TokenID: token(s.byAsk[i]),
			RequestHash: s.asked[i], Response: uint8(l.rng.IntN(101)), Tag: "hard_finality"}}
	case 5:
		client := person(l.rng.IntN(people))
		if n := s.given[key(uint64(agent), client)]; n > 0 {
			index := 1 + l.rng.Uint64N(n)
			if which := fmt.Sprint(agent, client, index); !s.gone[which] { // the registry refuses the second time
				s.gone[which] = true
				return []repute.Event{repute.FeedbackRevoked{TokenID: id, Client: client, Index: index}}
			}
		}
		return nil
	}
	rater, value := l.rng.IntN(people), int64(60+l.rng.IntN(41))
	if agent%3 == 0 {
		rater, value = l.rng.IntN(rooted), int64(11+l.rng.IntN(5)) // some are surely bad, and their owners have others
	}
	return []repute.Event{s.rate(uint64(agent), person(rater), value)}
}

func key(agent uint64, client common.Address) string { return fmt.Sprint(agent, client) }

func (s *state) mint(owner common.Address) []repute.Event {
	id := token(uint64(len(s.owners)))
	s.owners = append(s.owners, owner)
	return []repute.Event{repute.Transfer{To: owner, TokenID: id}, repute.Registered{TokenID: id, Owner: owner}}
}

func (s *state) rate(agent uint64, client common.Address, value int64) repute.Event {
	s.given[key(agent, client)]++
	return repute.NewFeedback{TokenID: token(agent), Client: client, Index: s.given[key(agent, client)],
		Value: big.NewInt(value), Tag1: "starred"}
}

// store brings a database to the ledger's tip, by a rewind where it was forked.
func (l *ledger) store(t testing.TB, db *store.DB, finalized uint64) {
	t.Helper()
	ctx := t.Context()
	cursor, err := chaindb.Cursor(ctx, db, l.chain.ID)
	ok(t, err)
	common := repute.Block{}
	for _, b := range l.blocks {
		if b.Number > cursor.Number {
			break
		}
		if stored, err := chaindb.StoredBlock(ctx, db, l.chain.ID, b.Number); err == nil && stored.Hash != b.Hash {
			break
		}
		common = b.Block
	}
	b := eventdb.Batch{ChainID: l.chain.ID, Parent: common, To: l.tip()}
	for _, m := range l.blocks[common.Number:] {
		b.Blocks, b.Records = append(b.Blocks, m.Block), append(b.Records, m.records...)
	}
	if common.Number < cursor.Number {
		ok(t, eventdb.Rewind(ctx, db, common, b))
	} else if b.To.Number > b.Parent.Number {
		ok(t, eventdb.Apply(ctx, db, b))
	}
	ok(t, chaindb.SetHead(ctx, db, l.chain.ID, store.Lease{}, chaindb.Head{Head: l.tip().Number, Finalized: finalized,
		SeenAt: time.Now()}))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{MaxConns: 8})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

// fresh is a database that knows the ledger's chain and roots.
func (l *ledger) fresh(t testing.TB) (*store.DB, string) {
	t.Helper()
	url := pgtest.New(t)
	db := open(t, url)
	ok(t, chaindb.AddChain(t.Context(), db, l.chain))
	ok(t, scoredb.SetEpoch(t.Context(), db, l.chain.ID, 10)) // as an engine does, so that no header is forgotten before
	var roots []repute.TrustRoot
	for i := range rooted {
		roots = append(roots, repute.TrustRoot{Address: person(i), Weight: repute.RootUnit, Reason: "test"})
	}
	ok(t, rootdb.AddRoots(t.Context(), db, l.chain.ID, repute.DefaultRoots, roots, false))
	return db, url
}

// shortEpochs are the default parameters with epochs of ten blocks.
func shortEpochs(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../rating/params.json")
	ok(t, err)
	head, _, found := bytes.Cut(b, []byte(`"epoch"`))
	if !found {
		t.Fatal("params.json has no epoch")
	}
	return append(head, []byte(`"epoch": {"blocks": 10}}`)...)
}

// start runs an engine until the returned function is called or the test ends.
func start(t testing.TB, db *store.DB) (stop func()) {
	t.Helper()
	return startWith(t, db, engine.EngineOptions{Exact: true})
}

func startWith(t testing.TB, db *store.DB, o engine.EngineOptions) (stop func()) {
	t.Helper()
	o.Params, o.Poll = shortEpochs(t), 10*time.Millisecond
	e, err := engine.New(db, o)
	ok(t, err)
	engine.SmallBatches(e)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// patience is how long tests wait while nothing moves: far longer than a claim or a lease of an engine that was
// stopped, which is a minute, on a machine that is busy otherwise.
const patience = 5 * time.Minute

// whenFree calls read again while no connection of the readers is free, as on a machine that is busy otherwise.
func whenFree[T any](t testing.TB, read func() (T, error)) (out T, err error) {
	t.Helper()
	for began := time.Now(); ; {
		if out, err = read(); !errors.Is(err, repute.ErrUnavailable) || time.Since(began) > patience {
			return out, err
		}
	}
}

// settle waits until every score is of the newest state and the epoch's run is closed, as
// long as anything moves.
func settle(t testing.TB, db *store.DB, chain, boundary uint64) scoredb.Run {
	t.Helper()
	moved, last := time.Now(), ""
	for {
		var quiet bool
		var seen string
		ok(t, db.Pool().QueryRow(t.Context(), `
			select not exists (select from trust_stale) and not exists (select from trust_marks) and not exists (select from trust_runs r
				where scored_to is not null and run = (select max(run) from trust_runs where chain_id = r.chain_id)),
				concat((select count(*) from trust_stale), ' ', (select max(mark) from trust_stale), ' ', (select max(run) from
					trust_runs), ' ', (select max(scored_to) from trust_runs), ' ', (select count(*) from trust_marks), ' ',
					(select count(*) from trust_finals))`).Scan(&quiet, &seen))
		states, err := whenFree(t, func() ([]scoredb.State, error) { return scoredb.ReadStates(t.Context(), db) })
		ok(t, err)
		if quiet && len(states) == 1 && states[0].Boundary == boundary && !states[0].Closed.IsZero() {
			return states[0].Run
		}
		if seen != last {
			moved, last = time.Now(), seen
		}
		if time.Since(moved) > patience {
			t.Fatalf("not settled: quiet %v, %+v, want boundary %d", quiet, states, boundary)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func dump(t testing.TB, db *store.DB, prefix string) (out []string) {
	t.Helper()
	lines, err := dumpScores(t.Context(), db, 9)
	ok(t, err)
	for _, l := range lines {
		if strings.Contains(l, prefix) {
			out = append(out, l)
		}
	}
	return out
}

// Whatever the order of blocks, forks, epochs and engines, the scores are those that
// somebody finds who meets the final chain for the first time.
func TestEnginesConvergeOnTheFinalChain(t *testing.T) {
	t.Parallel()
	guarded, rated := 0, 0
	for seed := range histories(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			scores := converge(t, seed)
			guarded += strings.Count(scores, `"guard"`)
			rated += strings.Count(scores, `"status":"rated"`)
		})
	}
	if guarded == 0 || rated == 0 {
		t.Errorf("%d guarded, %d rated agents: the test shows less than it should", guarded, rated)
	}
}

// histories is how many are tried: REPUTE_TEST_HISTORIES, or two.
func histories(t *testing.T) uint64 {
	t.Helper()
	asked := os.Getenv("REPUTE_TEST_HISTORIES")
	if asked == "" {
		return 2
	}
	n, err := strconv.ParseUint(asked, 10, 16)
	ok(t, err)
	return n
}

// converge lets two engines follow a random history, of which one ends half way, compares
// them with one that comes late and gives all scores.
func converge(t *testing.T, seed uint64) string {
	t.Helper()
	l := newLedger(seed)
	db, url := l.fresh(t)
	stop := start(t, db)
	start(t, open(t, url))
	var final uint64
	for step := range 30 {
		if step == 15 {
			stop() // one of the two is left
		}
		if tip := l.tip().Number; tip > final+2 && l.rng.IntN(3) == 0 {
			l.fork(final + l.rng.Uint64N(tip-final))
		}
		l.grow(1 + l.rng.IntN(6))
		final = max(final, l.tip().Number-min(l.tip().Number, 6))
		l.store(t, db, final)
	}
	settle(t, db, 9, final/10*10)
	again, _ := l.fresh(t)
	l.store(t, again, final)
	start(t, again)
	settle(t, again, 9, final/10*10)
	got, want := dump(t, db, " now "), dump(t, again, " now ")
	if len(want) < 5 || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("%d scores\n%s\nwant %d\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
	sameFinals(t, l, db, again, final/10*10)
	replayAll(t, db)
	return strings.Join(got, "")
}

// replayAll computes every final score again from what is stored.
func replayAll(t *testing.T, db *store.DB) {
	t.Helper()
	reader, err := explain.NewReader(db, explain.Options{})
	ok(t, err)
	rows, err := db.Pool().Query(t.Context(),
		"select distinct token_id::text, boundary from trust_finals join trust_runs using (chain_id, run) where closed_at is not null")
	ok(t, err)
	type final struct {
		Token    string
		Boundary uint64
	}
	finals, err := pgx.CollectRows(rows, pgx.RowToStructByPos[final])
	ok(t, err)
	if len(finals) == 0 {
		t.Error("no final score was stored")
	}
	for _, f := range finals {
		id, err := repute.ParseTokenID(f.Token)
		ok(t, err)
		_, err = reader.Replay(t.Context(), repute.AgentID{ChainID: 9, TokenID: id}, f.Boundary)
		ok(t, err)
	}
}

// dumpScores returns every stored score of a chain as ordered lines. Two chains with the same
// events, roots and runs return the same lines.
func dumpScores(ctx context.Context, db *store.DB, chainID uint64) (lines []string, err error) {
	rows, err := db.Pool().Query(ctx, `
		select format('%s now %s %s %s %s', s.token_id, s.block, encode(s.block_hash, 'hex'), encode(r.weights, 'hex'),
			convert_from(s.result, 'UTF8'))
		from trust_scores s join trust_runs r using (chain_id, run) where s.chain_id = $1
		union all
		select format('%s final %s %s %s', s.token_id, r.boundary, encode(r.weights, 'hex'), convert_from(s.result, 'UTF8'))
		from trust_finals s join trust_runs r using (chain_id, run) where s.chain_id = $1
		order by 1`, chainID)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
