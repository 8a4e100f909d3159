package api_test

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api"
	"repute/api/attestation"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
)

// current has the index say for an hour that its newest block is young, and that scores follow its ratings.
func current(t *testing.T, db *store.DB) {
	t.Helper()
	for _, sql := range []string{"update chains set cursor_time = now()", "delete from trust_stale",
		"update cursors set begun = now() + interval '1 hour' where job = 'marks'"} {
		if _, err := db.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAttestation: an account is judged as the decision on its agent judges, by its wallet and the agent's id.
func TestAttestation(t *testing.T) {
	t.Parallel()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	current(t, l.db)
	seen := map[string]int{}
	for agent := range scoredAgents {
		r := as[wire.ReputationAnswer](t, get(t, s, scoredPath(agent, "")))
		for _, demand := range []string{"", "&minScore=30", "&minScore=99", "&tier=2", "&gates=service",
			"&valueAtRisk=1000000000000000000"} {
			d := as[wire.DecisionAnswer](t, get(t, s,
				fmt.Sprintf("/agents/%d:%d/decision?%s", scoredChain, agent, strings.TrimPrefix(demand, "&"))))
			wallet := addr(600 + agent).Hex()
			for _, subject := range []string{strings.ToLower(wallet), fmt.Sprintf("eip155:%d:%s", scoredChain, wallet),
				fmt.Sprint(agent), fmt.Sprintf("%d:%d", scoredChain, agent), string(r.Agent)} {
				e := as[attestation.Evaluation](t, get(t, s,
					fmt.Sprintf("/v1/attestation?subject=%s&network=eip155:%d%s", subject, scoredChain, demand)))
				if (e.Decision == attestation.Pass) != (d.Decision.Decision == "allow") ||
					len(e.Agents) != 1 || e.Agents[0] != r.Agent || len(e.Reasons) != len(d.Reasons) ||
					e.Schema != attestation.Schema || e.Direction != "seller" || e.Subject != subject ||
					*e.Network != fmt.Sprintf("eip155:%d", scoredChain) {
					t.Errorf("agent %d %s: %+v\ndecision %+v", agent, demand, e, d)
				}
				if isScored := r.Status != "unrated"; isScored != (e.Score != nil) ||
					isScored != (e.NullReason == "") ||
					isScored && (math.Abs(*e.Score-(r.Score+100)/200) > 1e-6 || len(e.Basis) != 1) {
					t.Errorf("agent %d %s: score %v of %+v", agent, demand, e.Score, r.Standing)
				}
				seen[e.Decision]++
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %v", seen)
	}
	e := as[attestation.Evaluation](t, get(t, s, "/v1/attestation?direction=buyer&subject="+addr(600).Hex()))
	if *e.EvidenceURI != s.URL+"/agents/"+string(e.Agents[0])+"/reputation" || e.Network != nil ||
		e.Direction != "buyer" {
		t.Errorf("%+v", e)
	}
	if r := as[wire.ReputationAnswer](t, get(t, s, strings.TrimPrefix(*e.EvidenceURI, s.URL))); r.Agent != e.Agents[0] {
		t.Errorf("the evidence is of %s", r.Agent)
	}
	if r := get(t, s, strings.TrimPrefix(e.Basis[0].Ref, s.URL)); r.status != http.StatusOK {
		t.Errorf("%s is %d", e.Basis[0].Ref, r.status)
	}
	issued, err := time.Parse(time.RFC3339, string(e.IssuedAt))
	expires, errs := time.Parse(time.RFC3339, string(e.ExpiresAt))
	if err != nil || errs != nil || expires.Sub(issued) != time.Duration(e.TTLSeconds)*time.Second ||
		e.TTLSeconds <= 0 {
		t.Errorf("%s to %s, %d s", e.IssuedAt, e.ExpiresAt, e.TTLSeconds)
	}
}

// TestAttestationOfNobody: what is not known is uncertain, whatever is demanded, and a wrong question is refused.
func TestAttestationOfNobody(t *testing.T) {
	t.Parallel()
	s, l := scoredWorld(t, httpapi.Limits{Rate: -1})
	current(t, l.db)
	chain := fmt.Sprintf("eip155:%d", scoredChain)
	for query, code := range map[string]string{
		"subject=" + addr(9999).Hex() + "&network=" + chain:                    attestation.UnknownSubject,
		"subject=" + addr(9999).Hex() + "&network=" + chain + "&minScore=-100": attestation.UnknownSubject,
		"subject=" +
			addr(500).Hex(): attestation.UnknownSubject, // it owns an agent whose wallet is another
		"subject=777&network=" + chain + "&direction=buyer": attestation.UnknownSubject,
		"subject=777":                         attestation.UnknownSubject,
		"subject=eip155:1:" + addr(600).Hex(): attestation.UnsupportedChain,
		"subject=1:0":                         attestation.UnsupportedChain,
		"subject=" + addr(600).Hex() + "&network=eip155:1":                             attestation.UnsupportedChain,
		"subject=" + addr(600).Hex() + "&network=base-sepolia":                         attestation.UnsupportedChain,
		"subject=7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV&network=solana:5eykt4UsF": attestation.UnsupportedChain,
	} {
		r := get(t, s, "/v1/attestation?"+query)
		e := as[attestation.Evaluation](t, r)
		if e.Decision != attestation.Uncertain || e.ReasonCode != code || e.NullReason != code || e.Score != nil ||
			len(e.Agents)+len(e.Basis) != 0 || e.EvidenceURI != nil || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %+v, %v", query, e, r.header)
		}
	}
	for query, field := range map[string]string{
		"":                                     "subject",
		"subject=":                             "subject",
		"subject=0x12":                         "subject",
		"subject=" + strings.Repeat("1", 300):  "subject",
		"subject=0x%00":                        "subject",
		"subject=agent":                        "subject",
		"subject=0x" + strings.Repeat("0", 40): "subject",
		"subject=eip155:0:" + addr(600).Hex():  "subject",
		"subject=eip155:5:7":                   "subject",
		"subject=eip155:5:" + addr(600).Hex() + "&network=" + chain:  "subject",
		"subject=5:1&network=" + chain:                               "subject",
		"subject=eip155:1:" + addr(600).Hex() + ":x":                 "subject",
		"subject=" + strings.Repeat("a", 201) + "&network=solana:5":  "subject",
		"subject=" + addr(600).Hex() + "&network=a%20b":              "network",
		"subject=" + addr(600).Hex() + "&network=%00":                "network",
		"subject=" + addr(600).Hex() + "&direction=both":             "direction",
		"subject=" + addr(9999).Hex() + "&gates=servic":              "gates",
		"subject=" + addr(9999).Hex() + "&minScore=x":                "minScore",
		"subject=" + addr(9999).Hex() + "&direct=seller":             "direct",
		"subject=" + addr(600).Hex() + "&subject=" + addr(601).Hex(): "subject",
		"subject=" + addr(600).Hex() + "&valueAtRisk=1%3Bdrop":       "valueAtRisk",
		"subject=" + addr(600).Hex() + "&at=finalized":               "at",
	} {
		if p := problemOf(t, get(t, s, "/v1/attestation?"+query)); p.Status != http.StatusBadRequest ||
			len(p.Errors) != 1 ||
			p.Errors[0].Field != field {
			t.Errorf("%.80s: %+v", query, p)
		}
	}
}

// TestAttestationOfStaleIndex: nobody is passed by an index that has not seen the chain's head for long or whose scores
// do not follow, and nobody who has more agents than are looked at.
func TestAttestationOfStaleIndex(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := newLedger(t, db, scoredChain)
	l.addRoots("default", chainRoots)
	l.crowd()
	for n := range uint64(attestation.MaxAgents + 1) {
		l.add(mint(100+n, addr(7000), "")...)
		l.add(repute.MetadataSet{TokenID: token(100 + n), Key: "agentWallet", Value: addr(7000).Bytes()})
	}
	current(t, db)
	s := serve(t, api.Options{DB: db}, unlimited())
	for _, c := range []struct { // in this order: a final block stays final
		name      string
		ago       time.Duration
		finalized uint64
		code      string
	}{
		{"current", 0, 0, "trust.unrated"},
		{"head unseen", time.Hour, 0, attestation.StaleIndex},
		{"without scores", 0, 1, attestation.StaleIndex}, // an epoch ended, and no engine runs
	} {
		if err := chaindb.SetHead(t.Context(), db, scoredChain, store.Lease{},
			chaindb.Head{Head: l.tip.Number, Safe: c.finalized, Finalized: c.finalized,
				SeenAt: time.Now().Add(-c.ago)}); err != nil {
			t.Fatal(err)
		}
		e := as[attestation.Evaluation](t, get(t, s, "/v1/attestation?subject="+addr(600).Hex()))
		if e.Decision != attestation.Uncertain || e.ReasonCode != c.code {
			t.Errorf("%s: %+v", c.name, e)
		}
	}
	e := as[attestation.Evaluation](t, get(t, s, "/v1/attestation?subject="+addr(7000).Hex()))
	if e.ReasonCode != attestation.TooManyAgents || e.Decision != attestation.Uncertain {
		t.Errorf("%+v", e)
	}
}

// TestAttestationOfSeveralChains: a bare id does not name an agent where several chains are indexed.
func TestAttestationOfSeveralChains(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	for chain := uint64(scoredChain); chain <= scoredChain+1; chain++ {
		l := newLedger(t, db, chain)
		l.add(mint(0, addr(1), "")...)
		if err := chaindb.SetHead(t.Context(), db, chain, store.Lease{},
			chaindb.Head{Head: l.tip.Number, SeenAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	current(t, db)
	s := serve(t, api.Options{DB: db}, unlimited())
	if p := problemOf(t, get(t, s, "/v1/attestation?subject=0")); len(p.Errors) != 1 || p.Errors[0].Field != "subject" {
		t.Errorf("%+v", p)
	}
	e := as[attestation.Evaluation](t, get(t, s,
		fmt.Sprintf("/v1/attestation?subject=0&network=eip155:%d", scoredChain)))
	if len(e.Agents) != 1 {
		t.Errorf("%+v", e)
	}
}
