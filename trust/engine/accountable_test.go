package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/docdb"
	"repute/store/rootdb"
	"repute/store/scoredb"
)

// launch is a ledger on which person(21), a launchpad, registers agents for these people and hands them over later.
func launch(t *testing.T, later time.Duration, owners ...common.Address) (*ledger, *store.DB) {
	t.Helper()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	var events []repute.Event
	for range owners {
		events = append(events, s.mint(person(21))...)
	}
	l.mine(s, events...)
	l.later = later
	s = l.state()
	events = nil
	for agent, to := range owners {
		s.owners[agent] = to
		events = append(events, repute.MetadataSet{TokenID: token(uint64(agent)), Key: "agentWallet"},
			repute.Transfer{From: person(21), To: to, TokenID: token(uint64(agent))})
	}
	l.mine(s, events...)
	return l, db
}

// pay stores verified payments for the first ratings of an agent by raters, a minute before the last block.
func (l *ledger) pay(t *testing.T, db *store.DB, agent uint64, payee common.Address, raters ...common.Address) {
	t.Helper()
	at := l.tip()
	for i, rater := range raters {
		_, err := db.Pool().Exec(t.Context(), `
			insert into payments (chain_id, token_id, client, idx, payer, payee, pay_chain, tx, state, reason, pay_block,
				pay_log, pay_time, token, symbol, decimals, amount, paid, given, block, log_index)
			values (9, $1, $2, 1, $2, $3, 9, $4, 'verified', '', $5, 0, $6, $3, 'USDC', 6, 1000000, 1000000, $7, $5, 0)`,
			agent, rater[:], payee[:], fmt.Appendf(nil, "payment %d/%d", agent, i), at.Number,
			at.Time.Add(-time.Second),
			at.Time)
		ok(t, err)
	}
}

// An owner that never acts after a launchpad's transfer is accountable once two customers with weight paid its own
// address. One who is paid by strangers, or whose customers paid another address, is not.
func TestPaidOwnerIsAccountable(t *testing.T) {
	t.Parallel()
	l, db := launch(t, 0, person(8), person(9), person(10))
	s := l.state()
	mint := append(append(s.mint(person(8)), s.mint(person(9))...), s.mint(person(10))...) // 3, 4, 5
	l.mine(s, mint...)
	s = l.state()
	var events []repute.Event
	for agent := range uint64(3) {
		events = append(events, s.words(agent, 11, 0, rooted)...)
		for i := range 3 {
			events = append(events, s.rate(agent, person(30+i), 0))
		}
	}
	l.mine(s, events...)
	l.store(t, db, l.tip().Number)
	l.pay(t, db, 0, person(8), person(0), person(1))
	l.pay(t, db, 1, person(9), person(0), person(30), person(31), person(32))
	l.pay(t, db, 2, person(11), person(0), person(1), person(2))
	l.pad(60)
	l.run(t, db)
	for agent, want := range map[uint64]bool{3: true, 4: false, 5: false} {
		if got := limited(t, db, agent); got != want {
			t.Errorf("agent %d is limited: %v, want %v", agent, got, want)
		}
	}
	if g := guardOf(t, newest(t, db, 3)); g.Holder != person(8) {
		t.Errorf("agent 3 is limited by %+v", g)
	}
	replayAll(t, db)
}

// serve makes a domain prove agents by a file that names an address, as the file of each of them.
func serve(t *testing.T, db *store.DB, domain string, named common.Address, agents ...uint64) {
	t.Helper()
	uri := "https://" + domain + "/.well-known/agent-registration.json"
	r := &repute.Registration{Name: domain, Services: []repute.Service{{Name: "web",
		Endpoint: "https://" + domain + "/"},
		{Name: "agentWallet", Endpoint: fmt.Sprintf("eip155:9:%s", named.Hex())}}}
	for _, a := range agents {
		id := token(a)
		r.Registrations = append(r.Registrations,
			repute.RegistrationLink{TokenID: &id, Registry: "eip155:9:" + identity.Hex()})
	}
	var id int64
	ok(t, db.Pool().QueryRow(t.Context(), "update uris set host = $2 where uri = $1 returning id", []byte(uri),
		domain).Scan(&id))
	ok(t, docdb.SaveDocuments(t.Context(), db, docdb.FetchResult{URIID: id, Body: []byte(domain), Source: "https",
		ServedBy: domain, FetchedAt: time.Now(), ParserVersion: 1, Registration: r,
		Domains: []docdb.Domain{{Name: domain, Proof: uri}}, NextDue: time.Now().Add(time.Hour)}))
}

// at is a registration of the agents of which a domain's file is the file.
func (s *state) at(domain string, owner common.Address) []repute.Event {
	events := s.mint(owner)
	registered := events[1].(repute.Registered)
	registered.URI = "https://" + domain + "/.well-known/agent-registration.json"
	return []repute.Event{events[0], registered}
}

// The owner of an agent that its own domain proves, and who never acts, is accountable with regard to the other agents
// of that domain. A host of others' agents makes nobody accountable, nor does a domain that names somebody else.
func TestDomainOfABadAgent(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	s := l.state()
	var events []repute.Event
	for _, domain := range []string{"own.example", "shared.example", "foreign.example"} {
		events = append(events, s.at(domain, person(21))...)
		events = append(append(events, s.at(domain, person(21))...), s.mint(person(21))...)
	}
	events = append(events, s.at("shared.example", person(22))...) // 9, of somebody else
	l.mine(s, events...)
	for agent := range 9 {
		l.give(uint64(agent), person(8+agent/3))
	}
	s = l.state()
	events = nil
	for _, agent := range []uint64{0, 3, 6} {
		events = append(events, s.words(agent, 11, 0, rooted)...)
	}
	l.mine(s, events...)
	l.store(t, db, l.tip().Number)
	serve(t, db, "own.example", person(8), 0, 1)
	serve(t, db, "shared.example", person(9), 3, 4, 9)
	serve(t, db, "foreign.example", person(12), 6, 7)
	l.pad(60)
	l.run(t, db)
	for agent := range uint64(10) {
		if got := limited(t, db, agent); got != (agent == 1) {
			t.Errorf("agent %d is limited: %v by %+v", agent, got, guardOf(t, newest(t, db, agent)))
		}
	}
	l.mine(l.state(), repute.URIUpdated{TokenID: token(0), URI: "https://x/1", UpdatedBy: person(8)})
	s = l.state()
	l.mine(s, s.words(0, 11, 0, rooted)...)
	l.pad(70)
	l.store(t, db, 70)
	await(t, "who acts is accountable for all its agents", func() bool { return limited(t, db, 2) })
	replayAll(t, db)
}

// A platform that hands agents over after eleven minutes answers for a bad customer who never acts in the share of all
// agents that it registered, and not for one who acts. Customers who act are not related to it.
func TestPlatformOfABadCustomer(t *testing.T) {
	t.Parallel()
	const customers = 40
	var owners []common.Address
	for i := range customers {
		owners = append(owners, person(1000+i))
	}
	l, db := launch(t, 11*time.Minute, owners...)
	s := l.state()
	l.mine(s, repute.URIUpdated{TokenID: token(2), URI: "https://x/1", UpdatedBy: owners[2]})
	s = l.state()
	events := s.words(0, 11, 0, rooted)
	for agent := 1; agent < customers; agent++ {
		events = append(events, s.words(uint64(agent), 90, 0, 3)...)
	}
	l.mine(s, events...)
	l.pad(60)
	l.run(t, db)
	free, other := newest(t, db, 2), newest(t, db, 1)
	if limited(t, db, 2) || free.Score < 20_000 {
		t.Errorf("a customer who acted: %d, limited by %+v", free.Score, guardOf(t, free))
	}
	full := float64(free.Score - newest(t, db, 0).Score)
	if loss := float64(free.Score - other.Score); !limited(t, db, 1) || loss < 0.09*full || loss > 0.11*full {
		t.Errorf("one of 40 is bad: another customer loses %.0f of %.0f", loss, full)
	}
	l.mine(l.state(), repute.URIUpdated{TokenID: token(1), URI: "https://x/2", UpdatedBy: owners[1]})
	l.store(t, db, 60)
	await(t, "the other customer is free", func() bool { return !limited(t, db, 1) })
	replayAll(t, db)
}

// An owner that moves an agent to an address that is linked to it keeps the praise of before; a stranger does not get
// it. So does the graph.
func TestMoveToALinkedAddress(t *testing.T) {
	t.Parallel()
	l := newLedger(99)
	db, _ := l.fresh(t)
	ok(t, rootdb.AddLinks(t.Context(), db, 9,
		[]repute.TrustLink{{A: person(8), B: person(12), Reason: "one owner", Source: "test"}}, false))
	s := l.state()
	l.mine(s, append(append(s.mint(person(8)), s.mint(person(8))...), s.mint(person(8))...)...)
	s = l.state()
	var events []repute.Event
	for agent := range uint64(3) {
		events = append(events, s.words(agent, 90, 0, rooted)...)
	}
	l.mine(s, events...)
	l.give(0, person(12))
	l.give(1, person(13))
	l.pad(60)
	l.run(t, db)
	kept, moved, sold := newest(t, db, 2), newest(t, db, 0), newest(t, db, 1)
	if moved.Score < kept.Score-2000 || kept.Score < 50_000 || sold.Score != 0 {
		t.Errorf("moved %d, kept %d, sold %d", moved.Score, kept.Score, sold.Score)
	}
	run, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	if run.Edges != rooted { // to the one identity of person(8) and person(12)
		t.Errorf("%d edges", run.Edges)
	}
	replayAll(t, db)
}
