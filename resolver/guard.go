package resolver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

	"repute/internal/httprule"
)

const (
	dialTimeout    = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	headerTimeout  = 10 * time.Second
	maxHeaderBytes = 64 << 10
	maxRedirects   = 3
)

// GuardOptions opens the guard. The zero value allows public https hosts on port
// 443 only.
type GuardOptions struct {
	// AllowHosts are "host" (any port) or "host:port" that may be private and may use plain http:
	// for development and own services. URIs of all documents may reach them, also by a redirect.
	AllowHosts []string
	// AllowPrefixes are private address ranges that may be dialed on any port; IP literals inside
	// them may use plain http.
	AllowPrefixes []netip.Prefix
	// AllowHTTP permits plain http to public hosts on port 80.
	AllowHTTP bool
	// Ports that public hosts are dialed on; 443 when empty.
	Ports []uint16
	// RootCAs replaces the system's certificate roots.
	RootCAs *x509.CertPool
	// Resolver replaces the pure Go resolver.
	Resolver *net.Resolver
	// HeaderTimeout bounds the time until a host's answer begins; 10 s when 0.
	HeaderTimeout time.Duration
}

// Guard decides which URLs may be requested and which addresses may be dialed. Every outgoing
// request to an untrusted host MUST use one.
type Guard struct {
	hosts     map[string]bool
	prefixes  []netip.Prefix
	http      bool
	ports     []uint16
	guardian  *ssrf.Guardian
	transport *http.Transport
}

// NewGuard returns a guard with its own connection pool.
func NewGuard(o GuardOptions) *Guard {
	g := &Guard{hosts: map[string]bool{}, prefixes: o.AllowPrefixes, http: o.AllowHTTP, ports: o.Ports}
	for _, h := range o.AllowHosts {
		g.hosts[strings.ToLower(h)] = true
	}
	if len(g.ports) == 0 {
		g.ports = []uint16{443}
	}
	if g.http {
		g.ports = append(slices.Clone(g.ports), 80)
	}
	g.guardian = ssrf.New(ssrf.WithPorts(g.ports...))
	g.transport = g.newTransport(o)
	return g
}

// newTransport returns a transport that checks addresses after names are resolved, so that DNS
// cannot change the address in between.
func (g *Guard) newTransport(o GuardOptions) *http.Transport {
	resolver := o.Resolver
	if resolver == nil {
		resolver = &net.Resolver{PreferGo: true, Dial: net.DefaultResolver.Dial} // servers that the program chose
	}
	guarded := &net.Dialer{Timeout: dialTimeout, Resolver: resolver, Control: g.Control}
	open := &net.Dialer{Timeout: dialTimeout, Resolver: resolver}
	return &http.Transport{
		// An environment proxy would dial for us, behind the guard's back.
		Proxy: nil,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if g.allowsHost(addr) {
				return open.DialContext(ctx, network, addr)
			}
			return guarded.DialContext(ctx, network, addr)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  cmp.Or(o.HeaderTimeout, headerTimeout),
		MaxResponseHeaderBytes: maxHeaderBytes,
		// A connection idles between two requests to its host, of hundreds of hosts.
		MaxIdleConns:        1024,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     15 * time.Second,
		Protocols:           onlyHTTP1(),
		// We inflate ourselves, with a limit.
		DisableCompression: true,
	}
}

// onlyHTTP1 disables HTTP/2: a server that floods its client with empty frames (DATA, PING,
// SETTINGS) costs most of a core until the timeout, and net/http does not limit them. HTTP/1.1 has
// no such frames, and every server supports it.
func onlyHTTP1() *http.Protocols {
	var p http.Protocols
	p.SetHTTP1(true)
	return &p
}

// Control implements net.Dialer.Control. It checks the address after the name was resolved, so that
// neither DNS rebinding nor a redirect bypasses it.
func (g *Guard) Control(network, address string, conn syscall.RawConn) error {
	if ap, err := netip.ParseAddrPort(address); err == nil && g.allowsAddr(ap.Addr()) {
		return nil
	}
	return g.guardian.Safe(network, address, conn)
}

// Check decides from the text of a URL whether it may be requested at all. The
// addresses behind its host are checked again when they are dialed.
func (g *Guard) Check(u *url.URL) error {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	addr, ipErr := netip.ParseAddr(host)
	private := g.allowsHost(net.JoinHostPort(host, httprule.Port(u))) || ipErr == nil && g.allowsAddr(addr)
	switch {
	case u.User != nil:
		return final(ReasonBlockedHost, "user information in %q", u.Redacted())
	case u.Scheme == "http" && !g.http && !private:
		return final(ReasonHTTPDisabled, "plain http to %q", host)
	case u.Scheme != "https" && u.Scheme != "http":
		return final(ReasonUnsupportedScheme, "scheme %.32q", u.Scheme)
	case private:
		return nil
	case ipErr == nil:
		return g.checkLiteral(addr)
	}
	if err := checkName(host); err != nil {
		return err
	}
	return g.checkPort(u)
}

// allowsHost reports whether options open a host, with or without its port.
func (g *Guard) allowsHost(hostport string) bool {
	hostport = strings.ToLower(hostport)
	if g.hosts[hostport] {
		return true
	}
	host, _, err := net.SplitHostPort(hostport)
	return err == nil && g.hosts[host]
}

// allowsAddr reports whether an address is in one of the prefixes that options open.
func (g *Guard) allowsAddr(addr netip.Addr) bool {
	addr = addr.Unmap()
	return slices.ContainsFunc(g.prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// checkLiteral refuses an IP address in place of a host name; the error distinguishes internal
// addresses.
func (g *Guard) checkLiteral(addr netip.Addr) error {
	if err := g.guardian.SafeAddr(addr); err != nil {
		return final(ReasonBlockedAddress, "%w", err)
	}
	return final(ReasonBlockedHost, "IP literal %s", addr)
}

// checkName refuses names that are not public DNS names. A last label of digits
// is an IP address in a spelling that some resolvers accept.
func checkName(host string) error {
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case !strings.Contains(host, "."):
		return final(ReasonBlockedHost, "single-label host %.64q", host)
	case last == "local", last == "internal", last == "localhost", last == "onion",
		last == "test", last == "invalid", last == "arpa", last == "lan", last == "home":
		return final(ReasonBlockedHost, "reserved name %.64q", host)
	case last == "" || last[0] >= '0' && last[0] <= '9':
		return final(ReasonBlockedHost, "numeric host %.64q", host)
	}
	return nil
}

// checkPort refuses ports that documents are not served on.
func (g *Guard) checkPort(u *url.URL) error {
	port := httprule.Port(u)
	for _, p := range g.ports {
		if fmt.Sprint(p) == port {
			return nil
		}
	}
	// A host inside an allowed prefix may use any port; the dial decides.
	if len(g.prefixes) > 0 {
		return nil
	}
	return final(ReasonBlockedPort, "port %.8q", port)
}

// RoundTrip checks the URL of every request, the first and the redirected ones,
// and then sends it.
func (g *Guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.Check(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper must close it; the refusal is the news
		}
		return nil, err
	}
	return g.transport.RoundTrip(req)
}

// Client returns an http.Client that uses the guard: at most three redirects, each checked, no
// cookies, no proxy, and a limit for the whole exchange (0 means 20 s).
func (g *Guard) Client(timeout time.Duration) *http.Client {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return &http.Client{Transport: g, Timeout: timeout, CheckRedirect: checkRedirect}
}

// CloseIdle closes pooled connections.
func (g *Guard) CloseIdle() { g.transport.CloseIdleConnections() }

// checkRedirect refuses too many redirects and those from https to http.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return final(ReasonRedirects, "more than %d redirects", maxRedirects)
	}
	if last := via[len(via)-1].URL; last.Scheme == "https" && req.URL.Scheme != "https" {
		return final(ReasonHTTPDisabled, "redirect from https to %.16q", req.URL.Scheme)
	}
	// The URI is the agent's, not the next host's business.
	req.Header.Del("Referer")
	return nil
}

// stayAtOrigin is checkRedirect that also refuses another scheme, host or port than the first request's.
func stayAtOrigin(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || canonicalHost(req.URL) != canonicalHost(first) {
		return final(ReasonRedirects, "redirect to another origin, %.80q", req.URL.Redacted())
	}
	return checkRedirect(req, via)
}
