package documents

import (
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/internal/rpctest"
	"repute/internal/sitetest"
	"repute/resolver"
	"repute/store"
	"repute/store/query"
)

// proofAddress is where every name leads. Proofs are on port 443, no matter which server listens there.
const proofAddress = "127.0.80.4"

// serveNames answers https for names on port 443 and gives a client that trusts it.
func serveNames(t *testing.T, answer http.HandlerFunc, domains ...string) *resolver.Client {
	t.Helper()
	client, err := resolver.New(resolver.Options{Timeout: 10 * time.Second,
		GuardOptions: sitetest.New(t, proofAddress, answer, domains...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// A domain proves an agent by a file that only the domain can give, read as every other.
func TestDomainProofsAreRead(t *testing.T) {
	t.Parallel()
	const wellKnown = "/.well-known/agent-registration.json"
	c := rpctest.New(t, rpctest.Options{})
	named := func(agent int, domain string) string {
		return fmt.Sprintf(`{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Ada","description":"d","image":"https://x.example/i.png",
			"services":[{"name":"web","endpoint":"https://%s/"}],"registrations":[{"agentId":%d,"agentRegistry":"eip155:31337:%s"}]}`, domain, agent, c.Identity)
	}
	agents := []struct {
		domain string
		want   repute.DomainResult
		reason string
	}{
		{"proven.example.com", repute.DomainProven, ""},
		{"other.example.com", repute.DomainRefused, ""}, // names another agent
		{"none.example.com", repute.DomainRefused, "not_found"},
		{"moved.example.com", repute.DomainRefused, ""},        // redirects to somebody who says so
		{"own.example.com", repute.DomainRefused, "not_found"}, // serves the agent's file, as buckets do
		{"uncertified.example.com", repute.DomainUnavailable, "tls"},
		{"page.example.com", repute.DomainRefused, ""}, // answers everything with a page
	}
	var turned atomic.Bool // the first domain says something else
	client := serveNames(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Host + r.URL.Path {
		case "proven.example.com" + wellKnown:
			agent := 0
			if turned.Load() {
				agent = 1
			}
			fmt.Fprint(w, named(agent, "proven.example.com"))
		case "other.example.com" + wellKnown:
			fmt.Fprint(w, named(0, "other.example.com"))
		case "moved.example.com" + wellKnown:
			http.Redirect(w, r, "https://friend.example.com/", http.StatusFound)
		case "friend.example.com/":
			fmt.Fprint(w, named(3, "moved.example.com"))
		case "own.example.com/agent.json":
			fmt.Fprint(w, named(4, "own.example.com"))
		case "page.example.com" + wellKnown:
			fmt.Fprint(w, "<html>")
		default:
			http.NotFound(w, r)
		}
	}, "proven.example.com", "other.example.com", "none.example.com", "moved.example.com", "own.example.com",
		"friend.example.com", "page.example.com")
	var txs [][]types.Log
	for i, a := range agents {
		uri := "data:application/json," + named(i, a.domain)
		if a.domain == "own.example.com" {
			uri = "https://own.example.com/agent.json"
		}
		txs = append(txs, c.Register(uint64(i), rpctest.Account(1), uri))
	}
	c.Mine(txs...)
	db := openStore(t)
	index(t, db, c)
	defer running(t, New(db, client, Options{Sweep: 20 * time.Millisecond, Upkeep: 20 * time.Millisecond,
		Refetch: 50 * time.Millisecond}))()
	proof := func(i int) repute.DomainProof {
		t.Helper()
		id := repute.AgentID{ChainID: 31337, Registry: c.Identity, TokenID: rpctest.Token(uint64(i))}
		proofs, err := query.DomainProofs(t.Context(), db, id)
		if err != nil {
			t.Fatal(err)
		}
		if len(proofs[id]) != 1 {
			return repute.DomainProof{}
		}
		return proofs[id][0]
	}
	for i, a := range agents {
		var p repute.DomainProof
		eventually(t, a.domain+" was asked", func() bool {
			p = proof(i)
			return p.Domain == a.domain && !p.CheckedAt.IsZero()
		})
		if p.Result != a.want || p.Reason != a.reason {
			t.Errorf("%s: %+v, want %s", a.domain, p, a.want)
		}
		if p.URL != "https://"+a.domain+wellKnown {
			t.Errorf("%s: asked %q", a.domain, p.URL)
		}
	}
	turned.Store(true)
	eventually(t, "the domain has turned", func() bool { return proof(0).Result == repute.DomainRefused })
	eventually(t, "that is told", func() bool {
		changes, _, err := db.Changes(t.Context(), "", 1000, store.ChangeFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(changes, func(c store.Change) bool {
			return c.Kind == "proof.updated" &&
				c.TokenID.Dec() == "0"
		})
	})
}
