package engine_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/scoredb"
	"repute/trust"
	"repute/trust/flow"
	"repute/trust/rating"
	"repute/trust/replay"
)

const cardURI = "https://a.example/.well-known/agent-registration.json"

// publish makes what is behind cardURI another file: it names a wallet, its domain, and the
// agents that it belongs to.
func publish(t *testing.T, db *store.DB, body string, wallet common.Address, agents ...uint64) {
	t.Helper()
	r := &repute.Registration{Name: body, Services: []repute.Service{{Name: "web", Endpoint: "https://a.example/"},
		{Name: "agentWallet", Endpoint: fmt.Sprintf("eip155:9:%s", wallet.Hex())}}}
	for _, a := range agents {
		id := token(a)
		r.Registrations = append(r.Registrations,
			repute.RegistrationLink{TokenID: &id, Registry: "eip155:9:" + identity.Hex()})
	}
	var uri int64
	ok(t, db.Pool().QueryRow(t.Context(), "update uris set host = 'a.example' where uri = $1 returning id",
		[]byte(cardURI)).Scan(&uri))
	ok(t, docdb.SaveDocuments(t.Context(), db, docdb.FetchResult{URIID: uri, Body: []byte(body), Source: "https",
		ServedBy: "a.example", FetchedAt: time.Now(), ParserVersion: 1,
		Registration: r, Domains: []docdb.Domain{{Name: "a.example", Proof: cardURI}},
		NextDue: time.Now().Add(time.Hour)}))
}

// lacking is what a stored score says that the gate identity lacks.
func lacking(t *testing.T, s repute.Score) string {
	t.Helper()
	var r struct {
		Gates []struct {
			ID     string
			Passed bool
			Lacks  []struct {
				What       string
				Have, Need float64
			}
		}
	}
	ok(t, json.Unmarshal(s.Result, &r))
	for _, g := range r.Gates {
		if g.ID != "identity" {
			continue
		}
		if g.Passed {
			return "nothing"
		}
		var out []string
		for _, l := range g.Lacks {
			out = append(out, fmt.Sprintf("%s %g/%g", l.What, l.Have, l.Need))
		}
		return strings.Join(out, ", ")
	}
	t.Fatalf("no gate identity in %s", s.Result)
	return ""
}

// The gate follows the agent's file within an epoch; a final score keeps what the file said
// then, and is made again by it.
func TestIdentityGate(t *testing.T) {
	t.Parallel()
	l := newLedger(5)
	db, _ := l.fresh(t)
	s := l.state()
	mint := s.mint(person(8))
	mint[1] = repute.Registered{TokenID: token(0), URI: cardURI, Owner: person(8)}
	l.mine(s, append(mint, repute.MetadataSet{TokenID: token(0), Key: "agentWallet", Value: person(9).Bytes()},
		s.rate(0, person(0), 90))...)
	advance := func(to int) {
		l.pad(to)
		l.store(t, db, uint64(to))
	}
	advance(20)
	start(t, db)
	settle(t, db, 9, 20)
	if got := lacking(t, newest(t, db, 0)); got != "registrationResolves 0/1, walletDeclared 0/1" {
		t.Errorf("before the file was read: lacks %s", got)
	}
	became := func(want string) {
		t.Helper()
		last := ""
		for began := time.Now(); last != want; last = lacking(t, newest(t, db, 0)) {
			if time.Since(began) > patience {
				t.Fatalf("the gate lacks %s, want %s", last, want)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	publish(t, db, "copied", person(8))
	became("walletDeclared 0/1, domainsProven 0/1")
	publish(t, db, "own", person(9), 0)
	became("nothing")
	advance(30)
	settle(t, db, 9, 30)
	publish(t, db, "turned", person(7), 0)
	became("walletDeclared 0/1")
	for at, want := range map[uint64]string{20: "registrationResolves 0/1, walletDeclared 0/1", 30: "nothing"} {
		final, err := replayed(t, db, 0, at)
		if err != nil {
			t.Fatalf("replay at %d: %v", at, err)
		}
		if got := lacking(t, final); got != want {
			t.Errorf("final at %d lacks %s, want %s", at, got, want)
		}
	}
	kept, err := replayed(t, db, 0, 30)
	ok(t, err)
	body, err := scoredb.ReadInput(t.Context(), db, kept.Evidence)
	ok(t, err)
	m, err := replay.DecodeManifest(body)
	sum := common.Hash(sha256.Sum256([]byte("own")))
	if err != nil || m.Identity == nil || m.Identity.File == nil ||
		*m.Identity.File != (trust.ReadDocument{SHA256: sum, ParserVersion: 1}) || m.Identity.Proven != 1 {
		t.Errorf("manifest %s: %v", body, err)
	}
	for _, change := range []string{"update parses set errors = 1 where sha256 = $1",
		"delete from parses where sha256 = $1"} {
		_, err := db.Pool().Exec(t.Context(), change, sum[:])
		ok(t, err)
		var pruned *replay.PrunedError
		if _, err := replayed(t, db, 0, 30); !errors.As(err, &pruned) {
			t.Errorf("%s: %v", change, err)
		}
	}
}

// withCard is a chain of 20 blocks whose agent 0, of person 8 and with person 9 as its wallet,
// names the card as its file and is rated by person 0.
func withCard(t *testing.T, seed uint64) (*ledger, *store.DB) {
	t.Helper()
	l := newLedger(seed)
	db, _ := l.fresh(t)
	s := l.state()
	mint := s.mint(person(8))
	mint[1] = repute.Registered{TokenID: token(0), URI: cardURI, Owner: person(8)}
	l.mine(s, append(mint, repute.MetadataSet{TokenID: token(0), Key: "agentWallet", Value: person(9).Bytes()},
		s.rate(0, person(0), 90))...)
	l.pad(20)
	l.store(t, db, 20)
	return l, db
}

// A file that its host takes away, that is denied, or that comes back, is seen without any
// event of the agent, and also where more agents share it than are told at once.
func TestIdentityGateFollowsTheStandingOfAFile(t *testing.T) {
	t.Parallel()
	_, db := withCard(t, 6)
	publish(t, db, "own", person(9), 0)
	start(t, db)
	settle(t, db, 9, 20)
	step := func(what string, change func() error, want string) {
		t.Helper()
		ok(t, change())
		last := ""
		for began := time.Now(); last != want; last = lacking(t, newest(t, db, 0)) {
			if time.Since(began) > patience {
				t.Fatalf("%s: the gate lacks %s, want %s", what, last, want)
			}
			time.Sleep(2 * time.Millisecond)
		}
	}
	var uri int64
	ok(t, db.Pool().QueryRow(t.Context(), "select id from uris where uri = $1", []byte(cardURI)).Scan(&uri))
	fetched := func(r docdb.FetchResult) func() error {
		return func() error {
			r.URIID, r.FetchedAt, r.NextDue = uri, time.Now(), time.Now().Add(time.Hour)
			return docdb.SaveDocuments(t.Context(), db, r)
		}
	}
	back := docdb.FetchResult{Source: "https", ServedBy: "a.example"}
	took := docdb.FetchResult{Reason: "not_found"}
	away, there := "registrationResolves 0/1, domainsProven 0/1", "nothing"
	sum := sha256.Sum256([]byte("own"))
	denial := repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sum), Reason: "a test"}
	step("taken away", fetched(took), away)
	step("back", fetched(back), there)
	step("denied", func() error { return denydb.Deny(t.Context(), db, denial, false) },
		"registrationResolves 0/1, walletDeclared 0/1")
	step("allowed", func() error { return denydb.Undeny(t.Context(), db, denial.Kind, denial.Value) }, there)
	_, err := db.Pool().Exec(t.Context(), `
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block,
			registered_log, updated_block, updated_log)
		select chain_id, i, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block,
			updated_log
		from agents, generate_series(1000, 3000) i where token_id = 0`)
	ok(t, err)
	told := func(r docdb.FetchResult) func() error {
		return func() error {
			if err := fetched(r)(); err != nil {
				return err
			}
			// an hour later
			_, err := db.Pool().Exec(t.Context(), "update cursors set due = now() where job = 'shared document'")
			for more := true; more && err == nil; {
				more, err = docdb.AddSharedChanges(t.Context(), db, 500)
			}
			return err
		}
	}
	step("taken away from many", told(took), away)
	step("back for many", told(back), there)
	step("denied for many", func() error { return denydb.Deny(t.Context(), db, denial, false) },
		"registrationResolves 0/1, walletDeclared 0/1")
}

// An approval of all is the owner's word alone: it makes nobody one party with him, and
// silences no critic.
func TestOperatorIsNoParty(t *testing.T) {
	t.Parallel()
	l, db := scene(t, 20)
	before := [3]repute.Score{newest(t, db, 0), newest(t, db, 1), newest(t, db, 2)}
	run, err := scoredb.ReadRun(t.Context(), db, 9, 0)
	ok(t, err)
	l.mine(l.state(), repute.ApprovalForAll{Owner: person(8), Operator: person(0), Approved: true})
	l.pad(30)
	l.store(t, db, 30)
	if after := settle(t, db, 9, 30); after.Identities != run.Identities || after.Edges != run.Edges {
		t.Errorf("%d identities and %d edges, before %d and %d", after.Identities, after.Edges, run.Identities,
			run.Edges)
	}
	excluded := func(s repute.Score) (r struct{ Excluded, Rows, PathsAgainst int }) {
		ok(t, json.Unmarshal(s.Result, &r))
		return r
	}
	for i, want := range []int{0, 1, 0} { // blamed, praised, somebody else's
		was, is := excluded(before[i]), excluded(newest(t, db, uint64(i)))
		if is.Excluded != want || is.Rows != was.Rows-want || is.PathsAgainst != was.PathsAgainst {
			t.Errorf("agent %d: %+v, before %+v", i, is, was)
		}
	}
}

// Who an agent is does not depend on whether anybody rated it, and nobody looked at what
// has no score.
func TestIdentityGateWithoutRatings(t *testing.T) {
	t.Parallel()
	p, err := rating.DefaultParams()
	ok(t, err)
	e := trust.Evidence{Block: repute.Block{Time: time.Unix(1_750_000_000, 0)},
		Weights: flow.NewGraphBuilder().Build().Walk(nil, p.Walk)}
	for _, c := range []struct {
		who  *trust.Identity
		want string
	}{
		{nil, "checked 0/1"},
		{&trust.Identity{Resolves: true, Declares: true}, "nothing"},
		{&trust.Identity{Resolves: true, Declares: true, Domains: 3, Proven: 2}, "domainsProven 2/3"},
		{&trust.Identity{Domains: 1, Proven: 1}, "registrationResolves 0/1, walletDeclared 0/1"},
	} {
		e.Identity = c.who
		result := trust.Score(e, p)
		raw, err := json.Marshal(result)
		ok(t, err)
		if got := lacking(t, repute.Score{Result: raw}); got != c.want || result.Status != trust.Unrated {
			t.Errorf("%+v: %s, lacks %s, want %s", c.who, result.Status, got, c.want)
		}
		m := replay.ManifestOf(&e)
		again, err := replay.DecodeManifest(m.Encode())
		ok(t, err)
		copied := trust.Evidence{Identity: &trust.Identity{Domains: 77}}
		ok(t, again.Apply(&copied, nil))
		if !reflect.DeepEqual(copied.Identity, c.who) {
			t.Errorf("the manifest gives %+v for %+v", copied.Identity, c.who)
		}
	}
}
