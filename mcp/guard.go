package mcp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"repute"
)

// guard keeps pages of strangers away: from servers on this machine, whose names a
// stranger's DNS can take (rebinding), and from callers' browsers.
type guard struct {
	cross *http.CrossOriginProtection
	hosts []string // names under which this server is called
}

func newGuard(origins []string) (g guard, err error) {
	g.cross = http.NewCrossOriginProtection()
	for _, o := range origins {
		u, err := url.Parse(o)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return g, repute.Invalid("origins", fmt.Sprintf("%.200q is no origin", o), "scheme://host[:port], e.g. https://app.example")
		}
		if err := g.cross.AddTrustedOrigin(u.Scheme + "://" + u.Host); err != nil {
			return g, repute.Invalid("origins", fmt.Sprintf("%.200q is no origin", o), "scheme://host[:port], e.g. https://app.example")
		}
		g.hosts = append(g.hosts, strings.ToLower(u.Hostname()))
	}
	return g, nil
}

// over lets through what does not come from a stranger's page.
func (g guard) over(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.knows(r) {
			http.Error(w, "the header Host names another server than this", http.StatusForbidden)
			return
		}
		if err := g.cross.Check(r); err != nil {
			http.Error(w, "pages of this origin may not call tools here", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knows tells whether a server that only this machine reaches is called by a name that it
// has. Others are reached by any name.
func (g guard) knows(r *http.Request) bool {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if at == nil || !loopback(at.String()) {
		return true
	}
	return loopback(r.Host) || slices.Contains(g.hosts, strings.ToLower(hostOf(r.Host)))
}

func loopback(address string) bool {
	host := hostOf(address)
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
