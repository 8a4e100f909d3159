package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

// publishEndpoints is publish of a file of agent 0 with these endpoints, of whose domains
// those of a.example alone stand by it.
func publishEndpoints(t *testing.T, db *store.DB, body string, wallet common.Address, endpoints ...string) {
	t.Helper()
	id := token(0)
	r := &repute.Registration{Name: body,
		Services:      []repute.Service{{Name: "agentWallet", Endpoint: fmt.Sprintf("eip155:9:%s", wallet.Hex())}},
		Registrations: []repute.RegistrationLink{{TokenID: &id, Registry: "eip155:9:" + identity.Hex()}}}
	for _, e := range endpoints {
		r.Services = append(r.Services, repute.Service{Name: "web", Endpoint: e})
	}
	var uri int64
	ok(t, db.Pool().QueryRow(t.Context(), "update uris set host = 'a.example' where uri = $1 returning id",
		[]byte(cardURI)).Scan(&uri))
	ok(t, docdb.SaveDocuments(t.Context(), db, docdb.FetchResult{URIID: uri, Body: []byte(body), Source: "https",
		ServedBy: "a.example", FetchedAt: time.Now(), ParserVersion: 1,
		Registration: r, Domains: []docdb.Domain{{Name: "a.example", Proof: cardURI}},
		NextDue: time.Now().Add(time.Hour)}))
}

// Whatever an endpoint's host is, and however many there are: what nobody proved is lacking.
func TestIdentityGateOfHosts(t *testing.T) {
	t.Parallel()
	_, db := withCard(t, 5)
	publishEndpoints(t, db, "own", person(9), "https://a.example/", "HTTPS://x@A.example.:8443/y", "ipfs://bafkrei")
	start(t, db)
	settle(t, db, 9, 20)
	became := func(want string) {
		t.Helper()
		last := lacking(t, newest(t, db, 0))
		for began := time.Now(); last != want; last = lacking(t, newest(t, db, 0)) {
			if time.Since(began) > patience {
				t.Fatalf("the gate lacks %s, want %s", last, want)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	became("nothing")
	for i, other := range []string{"https://bank.example/", "http://bank.example/", "wss://bank.example/",
		"https://x@bank.example/", "https://10.0.0.1/", "grpc://bank.example:443", "https://bank.example/%zz"} {
		publishEndpoints(t, db, fmt.Sprint("other ", i), person(9), "https://a.example/", other)
		became("domainsProven 1/2")
		publishEndpoints(t, db, "own", person(9), "https://a.example/")
		became("nothing")
	}
}
