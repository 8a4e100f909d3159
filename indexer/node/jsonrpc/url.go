package jsonrpc

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// minSecret is the shortest path segment that is treated as a key: "v3" and "rpc" are not keys.
const minSecret = 4

// Redactor returns what replaces the parts of a URL that may be a key: path segments, query values
// and user info, as written and decoded.
func Redactor(u *url.URL) *strings.Replacer {
	var found []string
	add := func(least int, parts ...string) {
		for _, s := range parts {
			if len(s) >= least {
				found = append(found, s)
			}
		}
	}
	add(minSecret, strings.Split(u.Path, "/")...)
	add(minSecret, strings.Split(u.EscapedPath(), "/")...)
	for _, pair := range strings.Split(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if value == "" {
			value = name // ?KEY
		}
		plain, _ := url.QueryUnescape(value)
		add(1, value, plain)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		add(1, u.User.Username(), password, u.User.String())
	}
	// Longer secrets are replaced first, because a shorter one may be part of them.
	slices.SortFunc(found, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range found {
		pairs = append(pairs, s, "…")
	}
	return strings.NewReplacer(pairs...)
}

// HostOf returns the host of a URL in lower case, without port and trailing dot. Other
// notations of an IP address count as the same address.
func HostOf(u *url.URL) string {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return name
}
