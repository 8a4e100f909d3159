package documents

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/net/dns/dnsmessage"

	"repute"
	"repute/internal/rpctest"
	"repute/resolver"
	"repute/store"
	"repute/store/query"
)

// proofAddress is where every name leads. Proofs are on port 443, whoever listens there.
const proofAddress = "127.0.80.4"

// authority certifies names, for itself.
func authority(t *testing.T, names ...string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// names leads every name to proofAddress.
func names(t *testing.T) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := namesReply(buf[:n]); reply != nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

func namesReply(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) == 0 {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(proofAddress).As4()}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// serveNames answers https for names on port 443 and gives a client that trusts it.
func serveNames(t *testing.T, answer http.HandlerFunc, domains ...string) *resolver.Client {
	t.Helper()
	listener, err := net.Listen("tcp4", proofAddress+":443")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("port 443 is not for this user")
	} else if err != nil {
		t.Fatal(err)
	}
	cert, pool := authority(t, domains...)
	s := httptest.NewUnstartedServer(answer)
	_ = s.Listener.Close()
	s.Listener, s.TLS = listener, &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	client, err := resolver.New(resolver.Options{Timeout: 10 * time.Second, GuardOptions: resolver.GuardOptions{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix(proofAddress + "/32")}, RootCAs: pool, Resolver: names(t)}})
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
		changes, err := db.Changes(t.Context(), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(changes, func(c store.Change) bool {
			return c.Kind == "proof.updated" &&
				c.TokenID.Dec() == "0"
		})
	})
}
