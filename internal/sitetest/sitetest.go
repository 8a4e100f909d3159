// Package sitetest serves example.com over TLS to tests, so that what a domain says about itself is fetched as it is
// from others: by name, from port 443, through the guard.
package sitetest

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"repute/resolver"
)

// Host is the name of the site.
const Host = "example.com"

// New serves a handler on port 443 of an address of the loopback network, which MUST be the test's own, and returns the
// options of guards that find it. The test is skipped where the port cannot be opened.
func New(t testing.TB, address string, h http.Handler) resolver.GuardOptions {
	t.Helper()
	srv := start(t, address, h)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: roots,
		Resolver: names(t, address)}
}

// ForProcess is New for whole programs: this process finds the site by its name and takes its certificate, as if both
// were public. A test that uses it MUST NOT run beside others, and its package verifies no other certificate.
func ForProcess(t testing.TB, address string, h http.Handler) {
	t.Helper()
	srv := start(t, address, h)
	file := filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", file)
	before := net.DefaultResolver
	net.DefaultResolver = names(t, address)
	t.Cleanup(func() { net.DefaultResolver = before })
}

// start serves a handler over TLS.
func start(t testing.TB, address string, h http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp4", address+":443")
	if err != nil {
		t.Skipf("port 443 cannot be opened: %v", err)
	}
	srv := httptest.NewUnstartedServer(h)
	_ = srv.Listener.Close() // its random port is not used
	srv.Listener = listener
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// names is a DNS server that answers every question with one address.
func names(t testing.TB, address string) *net.Resolver {
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
			if reply := answer(buf[:n], address); reply != nil {
				_, _ = server.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
}

// answer is the reply to one question; nil for what is none.
func answer(question []byte, address string) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) == 0 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}
