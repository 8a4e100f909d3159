package resolver

import (
	"net"
	"net/url"
	"strings"

	"repute/internal/httprule"
)

// HostOf is the one spelling of the host of an http(s) URL: lower case, in ASCII as DNS
// has it, without a final dot, with its port unless that is the scheme's own; "" for
// other texts. What is true of a host (a denial, a pause it asked for) must hold however
// a stranger writes it.
func HostOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || !strings.EqualFold(u.Scheme, "https") && !strings.EqualFold(u.Scheme, "http") {
		return ""
	}
	return canonicalHost(u)
}

// canonicalHost returns the host of a URL in one form, with the port unless it is the scheme's
// default. It is empty if it cannot be stored.
func canonicalHost(u *url.URL) string {
	name, port := strings.TrimRight(httprule.Host(u.Hostname()), "."), u.Port()
	if name == "" || storable(name, maxHostText) != name {
		return ""
	}
	if port == "" || port == httprule.Port(&url.URL{Scheme: strings.ToLower(u.Scheme)}) {
		if strings.Contains(name, ":") {
			return "[" + name + "]"
		}
		return name
	}
	return net.JoinHostPort(name, port)
}
