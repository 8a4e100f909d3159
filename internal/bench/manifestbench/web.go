package manifestbench

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
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"repute/internal/bench/harness"
)

// Addresses of hosts by what they do. All hosts have one port; at the last address nothing listens.
const (
	liveAddress   = "127.0.0.1"
	muteAddress   = "127.0.0.2"
	closedAddress = "127.0.0.3"
)

// web is many hosts on this machine, told apart by their names, and the DNS server that has the names.
type web struct {
	port  uint16         // of all hosts
	roots *x509.CertPool // with the certificate of the hosts, which the crawl must trust
	site  *http.Server
	mute  net.Listener // accepts and never answers
	dns   net.PacketConn
	end   sync.WaitGroup
}

// name returns a host of a kind: live, mute or closed.
func (w *web) name(kind string, i int) string {
	return fmt.Sprintf("h%d-%s.bench.example.com:%d", i, kind, w.port)
}

// startWeb opens the hosts. close MUST be called, unless there is an error. The system chooses the port; the other
// addresses then take the same one.
func startWeb(ctx context.Context) (w *web, err error) {
	w = &web{roots: x509.NewCertPool()}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	certificate, err := wildcard(w.roots)
	if err != nil {
		return w, err
	}
	var lc net.ListenConfig
	live, err := lc.Listen(ctx, "tcp4", liveAddress+":0")
	if err != nil {
		return w, err
	}
	w.port = netip.MustParseAddrPort(live.Addr().String()).Port()
	if w.mute, err = lc.Listen(ctx, "tcp4", fmt.Sprintf("%s:%d", muteAddress, w.port)); err != nil {
		return w, errors.Join(err, live.Close())
	}
	if w.dns, err = lc.ListenPacket(ctx, "udp4", liveAddress+":0"); err != nil {
		return w, errors.Join(err, live.Close())
	}
	w.site = &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(io.Discard, "", 0)}
	secure := tls.NewListener(live, &tls.Config{Certificates: []tls.Certificate{certificate},
		MinVersion: tls.VersionTLS13})
	w.end.Go(func() { _ = w.site.Serve(secure) }) // until close
	w.end.Go(func() { harness.Mute(w.mute) })
	w.end.Go(w.resolve)
	return w, nil
}

// answer serves a manifest after the latency, and no robots.txt, which allows everything. The manifest names the host
// that was asked as its origin.
func answer(w http.ResponseWriter, r *http.Request) {
	time.Sleep(latency)
	if r.URL.Path != "/.well-known/agent.json" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	host, _, _ := strings.Cut(r.Host, ":")
	fmt.Fprintf(w,
		`{"version":"1.4","origin":%q,"payout_address":"0x1111111111111111111111111111111111111111","intents":[
		{"name":"book_flight","description":"Books a flight between two airports.","endpoint":"/book","method":"POST"}]}`, host)
}

// resolve answers questions for names until close.
func (w *web) resolve() {
	buf := make([]byte, 1500)
	for {
		n, from, err := w.dns.ReadFrom(buf)
		if err != nil {
			return
		}
		if reply, err := addressOf(buf[:n]); err == nil {
			_, _ = w.dns.WriteTo(reply, from) // the crawl asks again
		}
	}
}

// addressOf answers a question of DNS by the kind of the host. Hosts have no IPv6 address: that answer has no records.
func addressOf(question []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil || len(m.Questions) != 1 {
		return nil, errors.Join(err, errors.New("no question"))
	}
	q := m.Questions[0]
	out := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, Authoritative: true},
		Questions: m.Questions}
	if q.Type == dnsmessage.TypeA {
		at := liveAddress
		switch name := q.Name.String(); {
		case strings.Contains(name, "-mute."):
			at = muteAddress
		case strings.Contains(name, "-closed."):
			at = closedAddress
		}
		out.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type,
			Class: q.Class, TTL: 60},
			Body: &dnsmessage.AResource{A: [4]byte(net.ParseIP(at).To4())}}}
	}
	return out.Pack()
}

// names returns a resolver that asks the DNS server.
func (w *web) names() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp4", w.dns.LocalAddr().String())
	}}
}

// close ends all hosts and waits for their goroutines. It may be called for hosts that were opened in part.
func (w *web) close() {
	if w.site != nil {
		_ = w.site.Close() // requests are over
	}
	if w.mute != nil {
		_ = w.mute.Close()
	}
	if w.dns != nil {
		_ = w.dns.Close()
	}
	w.end.Wait()
}

// wildcard returns a certificate for all hosts, and adds it to the roots.
func wildcard(roots *x509.CertPool) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	// Its own issuer, valid for a day: it lives as long as the benchmark.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"*.bench.example.com"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return c, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return c, err
	}
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
