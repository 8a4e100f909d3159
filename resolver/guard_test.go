package resolver

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// loopback opens the guard for httptest servers, and for nothing else.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}

func TestGuardCheck(t *testing.T) {
	g := NewGuard(GuardOptions{AllowHosts: []string{"localhost:8080", "devhost"}, AllowPrefixes: loopback})
	for raw, want := range map[string]Reason{
		"https://example.com/a":            "",
		"https://example.com:443/a":        "",
		"https://xn--bcher-kva.example/":   "",
		"http://localhost:8080/":           "",
		"http://devhost:1234/":             "",
		"http://127.0.0.1:4030/a.json":     "",
		"http://example.com/":              ReasonHTTPDisabled,
		"http://localhost:8081/":           ReasonHTTPDisabled,
		"https://localhost:8081/":          ReasonBlockedHost,
		"ftp://example.com/":               ReasonUnsupportedScheme,
		"https://user:pw@example.com/":     ReasonBlockedHost,
		"https://user@devhost/":            ReasonBlockedHost,
		"https://127.0.0.2/":               ReasonBlockedAddress,
		"https://169.254.169.254/latest":   ReasonBlockedAddress,
		"https://10.1.2.3/":                ReasonBlockedAddress,
		"https://0.0.0.0/":                 ReasonBlockedAddress,
		"https://[::1]/":                   ReasonBlockedAddress,
		"https://[::ffff:10.0.0.1]/":       ReasonBlockedAddress,
		"https://[64:ff9b::7f00:1]/":       ReasonBlockedAddress,
		"https://[fe80::1%25eth0]/":        ReasonBlockedAddress,
		"https://8.8.8.8/":                 ReasonBlockedHost,
		"https://[2606:4700:4700::1111]/":  ReasonBlockedHost,
		"https://2130706433/":              ReasonBlockedHost,
		"https://0x7f.1/":                  ReasonBlockedHost,
		"https://127.1/":                   ReasonBlockedHost,
		"https://intranet/":                ReasonBlockedHost,
		"https://printer.local./":          ReasonBlockedHost,
		"https://metadata.google.internal": ReasonBlockedHost,
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := reasonOf(g.Check(u)); got != want {
			t.Errorf("Check(%s) = %q, want %q", raw, got, want)
		}
	}
}

func TestGuardCheckPort(t *testing.T) {
	u := &url.URL{Scheme: "https", Host: "example.com:22"}
	if got := reasonOf(NewGuard(GuardOptions{}).Check(u)); got != ReasonBlockedPort {
		t.Errorf("got %q", got)
	}
	if err := NewGuard(GuardOptions{Ports: []uint16{22}}).Check(u); err != nil {
		t.Error(err)
	}
	plain := &url.URL{Scheme: "http", Host: "example.com"}
	if err := NewGuard(GuardOptions{AllowHTTP: true}).Check(plain); err != nil {
		t.Error(err)
	}
}

func TestGuardIgnoresProxy(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	if NewGuard(GuardOptions{}).transport.Proxy != nil {
		t.Error("an environment proxy would dial behind the guard's back")
	}
}

// dnsServer answers every A question with the next of its addresses, then with the
// last one, like a rebinding name server.
func dnsServer(t *testing.T, addrs ...string) *net.Resolver {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	var asked atomic.Int64
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if reply := dnsReply(buf[:n], addrs, &asked); reply != nil {
				_, _ = pc.WriteTo(reply, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", pc.LocalAddr().String())
	}}
}

func dnsReply(question []byte, addrs []string, asked *atomic.Int64) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) == 0 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	switch {
	case len(addrs) == 0:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		i := min(int(asked.Add(1)), len(addrs)) - 1
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 0},
			Body:   &dnsmessage.AResource{A: netip.MustParseAddr(addrs[i]).As4()},
		}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

// The name first points at a public address, which is what a check before the
// dial would see, and at the loopback when it is dialled.
func TestGuardStopsRebinding(t *testing.T) {
	var hits atomic.Int64
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer srv.Close()
	addr := netip.MustParseAddrPort(srv.Listener.Addr().String())
	target := "https://example.com:" + portOf(addr)

	guard := GuardOptions{Ports: []uint16{addr.Port()}, RootCAs: roots(srv)}
	guard.Resolver = dnsServer(t, "93.184.215.14", "127.0.0.1")
	before, err := guard.Resolver.LookupHost(t.Context(), "example.com")
	if err != nil || before[0] != "93.184.215.14" {
		t.Fatalf("first answer %v, %v", before, err)
	}
	c := client(t, Options{GuardOptions: guard})
	if _, err := c.Fetch(t.Context(), target); reasonOf(err) != ReasonBlockedAddress {
		t.Errorf("got %v", err)
	}
	if hits.Load() != 0 {
		t.Error("the private server was reached")
	}

	// The same server answers once the guard is opened: the test can fail.
	guard.AllowPrefixes = loopback
	c = client(t, Options{GuardOptions: guard})
	_, _ = c.Fetch(t.Context(), target)
	if hits.Load() != 1 {
		t.Error("the open guard did not reach the server")
	}
}

func TestGuardNamesPrivateTargets(t *testing.T) {
	for _, addr := range []string{"10.0.0.1", "169.254.169.254", "127.0.0.1", "100.64.0.1", "192.168.1.1", "0.0.0.0"} {
		c := client(t, Options{GuardOptions: GuardOptions{Resolver: dnsServer(t, addr)}})
		if _, err := c.Fetch(t.Context(), "https://example.com/"); reasonOf(err) != ReasonBlockedAddress {
			t.Errorf("%s: got %v", addr, err)
		}
	}
}

func TestFetchUnknownName(t *testing.T) {
	c := client(t, Options{GuardOptions: GuardOptions{Resolver: dnsServer(t)}})
	if _, err := c.Fetch(t.Context(), "https://example.com/"); reasonOf(err) != ReasonDNS {
		t.Errorf("got %v", err)
	}
}
