package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/rootdb"
	"repute/store/scoredb"
	"repute/trust/engine"
	"repute/trust/source"
)

// spendPolicy is the policy of the tests with a source by payments.
func spendPolicy(t *testing.T) *source.Policy {
	t.Helper()
	return spendPolicyOf(t, "club, spend")
}

// spendPolicyOf is spendPolicy with only some sources on.
func spendPolicyOf(t *testing.T, sources string) *source.Policy {
	t.Helper()
	const text = `
  - id: spend
    version: 1
    name: Spend
    issuer: payments
    meaning: paid
    class: B
    weight: 0.5
    price: {usd: 60, date: "2026-01-01", reference: "the test"}
    maturityDays: 1
    ageDays: 30
    keepDays: 0
    bounds: {praise: 3, blame: 2}
    read: {payments: {usd: 100, payees: 3, most: 40, vouched: 0.25}}
`
	p, err := source.Parse([]byte(strings.Replace(testPolicy, "sources: [club]", "sources: ["+sources+"]", 1) + text))
	ok(t, err)
	return p
}

// spend stores a verified payment of so many dollars for the first rating of an agent, at the newest block.
func (l *ledger) spend(t *testing.T, db *store.DB, agent uint64, rater, payee common.Address, dollars int64) {
	t.Helper()
	at := l.tip()
	_, err := db.Pool().Exec(t.Context(), `
		insert into payments (chain_id, token_id, client, idx, payer, payee, pay_chain, tx, state, reason, pay_block,
			pay_log, pay_time, token, symbol, decimals, amount, paid, given, block, log_index)
		values (9, $1, $2, 1, $2, $3, 9, $4, 'verified', '', $5, 0, $6, $3, 'USDC', 6, $7::bigint, $7::bigint, $6, $5, 0)`,
		agent, rater[:], payee[:], fmt.Appendf(nil, "spend %d/%s", agent, rater), at.Number, at.Time, dollars*1_000_000)
	ok(t, err)
	_, err = db.Pool().Exec(t.Context(), `
		insert into payment_ledger (chain_id, token_id, client, idx, paid) values (9, $1, $2, 1, $3)`, agent, rater[:],
		dollars*1_000_000)
	ok(t, err)
}

// returned makes all payments for ratings of an agent refused, as settling them again does.
func returned(t *testing.T, db *store.DB, agent uint64) {
	t.Helper()
	_, err := db.Pool().Exec(t.Context(), `
		with r as (update payments set state = 'refused', reason = 'circular' where token_id = $1 returning client),
			m as (insert into trust_marks (chain_id, token_id) values (9, $1))
		insert into payment_ledger (chain_id, token_id, client, idx, paid) select 9, $1, client, 1, 0 from r`, agent)
	ok(t, err)
}

// holdersOf are the raters with a credential of a source by a run.
func holdersOf(t *testing.T, db *store.DB, run scoredb.Run, id string) (list []common.Address) {
	t.Helper()
	for _, c := range credentialsOf(t, db, run) {
		if c.Source == id {
			list = append(list, c.Rater)
		}
	}
	return list
}

// Who paid 100 dollars to three owners of agents for whom roots vouch has weight, until a payment is returned. Payments
// to agents that nobody or only a source vouches for, to the rater's own identity and to former owners do not count.
// All scores are made again from what is stored.
func TestSpendingGivesWeight(t *testing.T) {
	t.Parallel()
	l, db, c := clubbedWith(t, engine.EngineOptions{Exact: true, Sources: spendPolicy(t)})
	settle(t, db, 9, 10)
	c.set(func(c *club) { c.members = persons(30, 34) })
	ok(t, rootdb.AddRoots(t.Context(), db, 9, repute.DefaultRoots, []repute.TrustRoot{
		{Address: person(0), Weight: repute.RootUnit, Reason: "test"}}, false))
	s := l.state()
	var events []repute.Event
	for owner := 8; owner <= 13; owner++ { // agents 1 to 6
		events = append(events, s.mint(person(owner))...)
	}
	l.mine(s, events...)
	payers := map[int]map[uint64]int64{ // dollars to agents
		50: {1: 40, 2: 40, 3: 30},       // 110 to vouched owners
		51: {1: 40, 2: 40, 3: 19},       // 99
		52: {1: 40, 2: 40, 4: 40},       // nobody vouches for the owner of 4
		53: {1: 40, 2: 40, 0: 40},       // members of the club alone praised 0
		8:  {1: 40, 2: 40, 3: 40},       // owns 1
		54: {1: 40, 2: 40, 6: 40},       // 6 gets another owner
		55: {1: 30, 2: 30, 3: 30, 6: 9}, // and so
	}
	s = l.state()
	events = nil
	for i, agent := range []uint64{1, 2, 3, 6} {
		events = append(events, s.rate(agent, person(0), int64(90+i)))
	}
	for payer, agents := range payers {
		for agent := range agents {
			events = append(events, s.rate(agent, person(payer), 80))
		}
		if payer != 8 {
			events = append(events, s.rate(5, person(payer), 90+int64(payer-50)))
		}
	}
	l.mine(s, events...)
	l.store(t, db, 10)
	for payer, agents := range payers {
		for agent, dollars := range agents {
			l.spend(t, db, agent, person(payer), s.owners[agent], dollars)
		}
	}
	s = l.state()
	s.owners[6] = person(8) // vouched, but not the one who was paid
	l.mine(s, repute.MetadataSet{TokenID: token(6), Key: "agentWallet"},
		repute.Transfer{From: person(13), To: person(8), TokenID: token(6)})

	run := advance(t, l, db, 20)
	before := newest(t, db, 5)
	if !slices.Equal(holdersOf(t, db, run, "spend"), persons(50, 51)) {
		t.Errorf("before maturity: %v", holdersOf(t, db, run, "spend"))
	}
	l.later = 48 * time.Hour
	run = advance(t, l, db, 30)
	with := newest(t, db, 5)
	states := statesOf(t, run)
	if !slices.Equal(holdersOf(t, db, run, "spend"), persons(50, 51)) || with.Mean <= before.Mean || len(states) != 2 ||
		states[1].Status != source.StatusOK || states[1].Hash != run.Block.Hash {
		t.Errorf("mature: %v, mean %s, %s before, readings %+v", holdersOf(t, db, run, "spend"), with.Mean, before.Mean,
			states)
	}
	again, err := engine.Spent(t.Context(), db, run, spendPolicy(t).Source("spend"))
	if err != nil || !slices.Equal(again.Credentials, credentialsOf(t, db, run)[4:]) {
		t.Errorf("read again: %+v, %v", again, err)
	}
	replayAll(t, db)
	returned(t, db, 3)
	run = advance(t, l, db, 40)
	if got := newest(t, db, 5); len(holdersOf(t, db, run, "spend")) != 0 || got.Mean >= with.Mean {
		t.Errorf("returned: %v, mean %s, %s before", holdersOf(t, db, run, "spend"), got.Mean, with.Mean)
	}
	replayAll(t, db)
}

// An epoch whose only source is payments does not ask the database who all raters are, which takes seconds on a large
// chain.
func TestPaymentsAloneAskForNoRaters(t *testing.T) {
	t.Parallel()
	l := newLedger(31)
	first, url := l.fresh(t)
	s := l.state()
	l.mine(s, s.mint(person(20))...)
	l.mine(s, s.rate(0, person(1), 90))
	l.pad(10)
	l.store(t, first, 10)
	db, seen := traced(t, url)
	startWith(t, db, engine.EngineOptions{Sources: spendPolicyOf(t, "spend")})
	run := settle(t, first, l.chain.ID, 10)
	if states := statesOf(t, run); len(states) != 1 || states[0].Source != "spend" {
		t.Errorf("readings %+v", states)
	}
	list, _ := seen.take()
	for _, sql := range list {
		if strings.HasPrefix(sql, "select coalesce(payer, client)") {
			t.Errorf("asked for the raters: %.80s", sql)
		}
	}
}
