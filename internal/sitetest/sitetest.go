// Package sitetest serves domains over TLS to tests, so that what a domain says about itself is fetched as it is from
// others: by name, from port 443, through the guard.
package sitetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"repute/resolver"
)

// Host is the name of a site that is given none.
const Host = "example.com"

// New serves a handler on port 443 of an address of the loopback network, which MUST be the test's own, and returns the
// options of guards that find it there under any name. Its certificate is for the domains, or for Host without any. The
// test is skipped where the user may not open the port.
func New(t testing.TB, address string, h http.Handler, domains ...string) resolver.GuardOptions {
	t.Helper()
	srv := start(t, address, h, domains...)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	return resolver.GuardOptions{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix(address + "/32")}, RootCAs: roots,
		Resolver: Names(t, address)}
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
	net.DefaultResolver = Names(t, address)
	t.Cleanup(func() { net.DefaultResolver = before })
}

// start serves a handler over TLS.
func start(t testing.TB, address string, h http.Handler, domains ...string) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp4", address+":443")
	if errors.Is(err, os.ErrPermission) {
		t.Skip("port 443 is not for this user")
	} else if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	_ = srv.Listener.Close() // its random port is not used
	srv.Listener = listener
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if len(domains) > 0 {
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, domains)}}
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// certificate certifies domains, for itself.
func certificate(t testing.TB, domains []string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: domains,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Names is a resolver whose DNS server answers every question with one address.
func Names(t testing.TB, address string) *net.Resolver {
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
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	if q.Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type,
			Class: q.Class},
			Body: &dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}
