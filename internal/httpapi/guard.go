package httpapi

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"repute"
)

// GuardOptions are the allowed host names of a server and the pages that may use it. The zero value
// allows loopback names and no pages of other sites.
type GuardOptions struct {
	// Hosts are names or addresses, without port, that the header Host may contain.
	Hosts []string
	// Origins are sites, scheme://host[:port], whose pages may send any request.
	Origins []string
	// Public reports whether a request changes nothing and reads nothing private. Nil: no
	// request is public.
	Public func(*http.Request) bool
	// Hint says how a name becomes one of the server; that of repute's configuration when empty.
	Hint string
}

// Guard refuses requests that a stranger's page made a browser send. A page reaches a server
// of the browser's own network in two ways: under the page's name, which its DNS moves to the
// server's address (rebinding), and across origins. Programs send neither Origin nor
// Sec-Fetch-Site and are not concerned. It does not change after NewGuard and is safe for concurrent use.
type Guard struct {
	hosts   []string
	origins []string
	cross   *http.CrossOriginProtection
	public  func(*http.Request) bool
	hint    string
}

// NewGuard returns a guard. repute.ErrInvalid names the configuration key of an invalid host or
// origin. Hosts are compared without port: another port of the same name is the same server.
func NewGuard(o GuardOptions) (*Guard, error) {
	g := &Guard{cross: http.NewCrossOriginProtection(), public: o.Public, hint: o.Hint}
	for _, h := range o.Hosts {
		if h == "" || strings.ContainsAny(h, "/@ ") || hostName(h) != strings.ToLower(strings.Trim(h, "[].")) {
			return nil, repute.Invalid("allowed_hosts", fmt.Sprintf("%.200q is no host", h),
				"a name or address without port, e.g. repute.example, or a site, e.g. https://app.example")
		}
		g.hosts = append(g.hosts, hostName(h))
	}
	for _, o := range o.Origins {
		wrong := repute.Invalid("allowed_hosts", fmt.Sprintf("%.200q is no origin", o),
			"scheme://host[:port], e.g. https://app.example")
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, wrong
		}
		origin := u.Scheme + "://" + strings.ToLower(u.Host)
		if g.cross.AddTrustedOrigin(origin) != nil {
			return nil, wrong
		}
		g.origins = append(g.origins, origin)
	}
	return g, nil
}

// Over returns a handler that passes admitted requests to next.
func (g *Guard) Over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := g.refusal(r); refusal != nil {
			w.Header().Set("X-Content-Type-Options", "nosniff")
			refusal.Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusal returns why a request is refused; nil if it is admitted. The host is checked before the page, because under a
// foreign name every page looks like one of this server.
func (g *Guard) refusal(r *http.Request) *ErrorBody {
	public := g.public != nil && g.public(r)
	switch {
	case !g.knowsHost(r, public):
		b := NewError(http.StatusForbidden, "forbidden", "Forbidden",
			fmt.Sprintf("Host: %.100q is no name of this server",
				Clean(r.Host)))
		b.Hint = "call it by its address, or add the name to allowed_hosts of the configuration; orchestrator.public_url is included"
		if g.hint != "" {
			b.Hint = g.hint
		}
		return b
	case !public && !g.knowsPage(r):
		b := NewError(http.StatusForbidden, "forbidden", "Forbidden",
			"Origin: pages of other sites may not send this request")
		b.Hint = "add the page's origin, scheme://host, to allowed_hosts of the configuration"
		return b
	}
	return nil
}

// knowsHost reports whether the header Host is a name of this server. On a loopback
// connection only loopback names and configured ones are. On any other connection public
// requests may carry every name, and addresses and names without a dot are known too: no
// stranger's DNS answers for them. Every browser sends Host; without it a program asks.
func (g *Guard) knowsHost(r *http.Request, public bool) bool {
	name := hostName(r.Host)
	addr, err := netip.ParseAddr(name)
	isAddress := err == nil
	switch {
	case r.Host == "", name == "localhost", isAddress && addr.Unmap().IsLoopback(), slices.Contains(g.hosts, name):
		return true
	case overLoopback(r):
		return false
	}
	return public || isAddress || !strings.Contains(name, ".")
}

// knowsPage reports whether a request was sent by a program, a page of this server or of a
// configured origin, or by following a link.
func (g *Guard) knowsPage(r *http.Request) bool {
	if !isSafe(r.Method) {
		return g.cross.Check(r) == nil
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" ||
		slices.Contains(g.origins, strings.ToLower(r.Header.Get("Origin")))
}

// isSafe reports whether requests of a method change nothing, as RFC 9110 has it.
func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// overLoopback reports whether a request came over the loopback interface.
func overLoopback(r *http.Request) bool {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil {
		return false
	}
	addr, err := netip.ParseAddr(hostName(local.String()))
	return err == nil && addr.Unmap().IsLoopback()
}

// hostName returns a host without port, brackets and final dot, in lower case.
func hostName(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}
