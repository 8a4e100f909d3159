package manifests

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/net/dns/dnsmessage"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/documents"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/manifestdb"
)

// openStore opens an empty database.
func openStore(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t),
		store.Options{Classify: documents.Classify, Decode: contracts.Read, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// index stores what the chain has, and reads the files of its agents.
func index(t *testing.T, db *store.DB, c *rpctest.Chain, client *resolver.Client) {
	t.Helper()
	chain := repute.Chain{ID: 31337, Name: "scripted", Identity: c.Identity, Reputation: c.Reputation,
		Validations: []common.Address{c.Validation}, StartBlock: 1}
	if err := chaindb.AddChain(t.Context(), db, chain); err != nil {
		t.Fatal(err)
	}
	n, err := node.New(c.URL(), node.Options{Timeout: 20 * time.Second, OpenMin: 1, OpenMax: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	f := indexer.NewFollower(db, chain, n, indexer.Options{Poll: 10 * time.Millisecond})
	for err == nil {
		err = f.Step(t.Context(), store.Lease{})
	}
	if !errors.Is(err, indexer.ErrNothingNew) {
		t.Fatal(err)
	}
	loop := documents.New(db, client, documents.Options{Sweep: 20 * time.Millisecond, Upkeep: 20 * time.Millisecond})
	t.Cleanup(running(t, loop.Run))
}

// running runs a loop until stop, which waits for its end.
func running(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// site answers https for domains on port 443 of an address of the loopback network, so that hosts have no port. Each
// test has its own address.
func site(t *testing.T, address string, answer http.HandlerFunc, domains ...string) *resolver.Client {
	t.Helper()
	listener, err := net.Listen("tcp4", address+":443")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("port 443 is not for this user")
	} else if err != nil {
		t.Fatal(err)
	}
	cert, pool := authority(t, domains...)
	s := httptest.NewUnstartedServer(answer)
	_ = s.Listener.Close() // its random port is not used
	s.Listener, s.TLS = listener, &tls.Config{Certificates: []tls.Certificate{cert}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	client, err := resolver.New(resolver.Options{Timeout: 2 * time.Second, GuardOptions: resolver.GuardOptions{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix(address + "/32")}, RootCAs: pool,
		Resolver: names(t, address)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

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

// names is a DNS server that answers every question with one address.
func names(t *testing.T, address string) *net.Resolver {
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
			if reply := addressReply(buf[:n], address); reply != nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

func addressReply(question []byte, address string) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) == 0 {
		return nil
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// read returns what is stored of a domain; the zero value before it is known.
func read(t *testing.T, db *store.DB, domain string) (manifestdb.Manifest, []manifestdb.Link) {
	t.Helper()
	m, links, err := manifestdb.Read(t.Context(), db, domain)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		t.Fatal(err)
	}
	return m, links
}

// quick are options with which nothing waits long.
func quick() Options {
	return Options{Sweep: 10 * time.Millisecond, PlanWait: 20 * time.Millisecond, Refetch: 50 * time.Millisecond,
		Absent: 50 * time.Millisecond, RetryMin: 20 * time.Millisecond, RetryMax: 100 * time.Millisecond}
}

// crawl runs a loop of listed domains.
func crawl(t *testing.T, db *store.DB, client *resolver.Client, o Options, domains ...string) (stop func()) {
	t.Helper()
	if _, err := manifestdb.Import(t.Context(), db, domains); err != nil {
		t.Fatal(err)
	}
	stop = running(t, New(db, wellknown.New(client), o).Run)
	t.Cleanup(stop)
	return stop
}
