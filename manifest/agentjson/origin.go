package agentjson

import (
	"net/netip"
	"net/url"
	"strings"

	"repute/internal/httprule"
)

// maxHost is the length of a DNS name.
const maxHost = 253

// SameHost reports whether an origin is exactly a host: as DNS has both, whatever their letter case. A subdomain or a
// parent domain is another host.
// A host that is no name alone, such as one with a port, is the same as no other, itself included.
func SameHost(origin, host string) bool {
	a, b := canonicalHost(origin), canonicalHost(host)
	return a != "" && a == b
}

// canonicalHost returns a host name in ASCII and lower case; "" for texts that are no host name alone.
func canonicalHost(host string) string {
	if host = httprule.Host(host); !isHostName(host) {
		return ""
	}
	return host
}

// PublicHost returns the host, in the form of origins, that a manifest can speak for. ok is false for texts that are no
// public domain name alone.
func PublicHost(host string) (origin string, ok bool) {
	origin = canonicalHost(host)
	return origin, origin != "" && notPublic(origin) == ""
}

// isHostName reports whether s has the form of a name in DNS: labels of letters, digits and inner hyphens.
func isHostName(s string) bool {
	if s == "" || len(s) > maxHost {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i] | 0x20
			if (c < 'a' || c > 'z') && (label[i] < '0' || label[i] > '9') && label[i] != '-' {
				return false
			}
		}
	}
	return true
}

// origin reads the host that the manifest speaks for, and compares it with the one that served it.
func (o *object) origin(host string) string {
	s := o.required("origin", maxShort)
	if s == "" {
		return ""
	}
	if !isHostName(s) {
		o.r.add(CodeForm, "/origin", "%.*q is no domain name in ASCII without scheme, port and path", maxQuotedValue, s)
		return ""
	}
	s = strings.ToLower(s)
	if reason := notPublic(s); reason != "" {
		o.r.add(CodeOriginName, "/origin", "%.*q is %s", maxQuotedValue, s, reason)
	}
	// The comparison of texts comes first, as nearly all manifests are served by the very host that they name.
	if host != "" && s != host && !SameHost(s, host) {
		o.r.add(CodeOrigin, "/origin", "origin %.*q, served by %.*q", maxQuotedValue, s, maxQuotedValue, host)
	}
	return s
}

// notPublic says what a host name is where it is no public domain name.
// The reserved domains are those of RFC 6761 and RFC 6762, of onion services, and of ICANN's internal. "" is a public
// name.
func notPublic(host string) string {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil || last[0] >= '0' && last[0] <= '9':
		return "an IP address"
	case last == host:
		return "a single label"
	case last == "local" || last == "internal" || last == "localhost" || last == "onion" || last == "test" ||
		last == "invalid" || last == "arpa":
		return "of a reserved domain"
	}
	return ""
}

// endpointURL resolves an endpoint: a path, or a URL of the origin itself. The reason says why it MUST NOT be called.
// Whatever parsers read differently (backslashes, control characters, white space) is refused.
//
// Parsers of other languages read a backslash as a slash and skip control characters, so that such a text could lead
// a client to another host than the one that was checked here. The replacement character stands for bytes that were
// no UTF-8.
func endpointURL(origin, endpoint string) (absolute, reason string) {
	if strings.ContainsFunc(endpoint, func(c rune) bool { return c <= ' ' || c == '\\' || c == 0x7f || c == 0xfffd }) {
		return "", "has white space, a backslash or a control character"
	}
	if strings.HasPrefix(endpoint, "//") { // also "///", which browsers read alike
		return "", "begins with // and so leads to another host"
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", "is no URL"
	case u.User != nil:
		return "", "has user information"
	case u.Opaque != "":
		return "", "is no http URL"
	case u.Scheme == "":
		return resolvePath(origin, u)
	case u.Scheme != "https":
		return "", "is not https"
	case u.Port() != "" && u.Port() != "443" || strings.HasSuffix(u.Host, ":"):
		return "", "has a port"
	case !SameHost(origin, u.Hostname()):
		return "", "is not of the origin"
	}
	// The host is written as the origin has it: SameHost has accepted another letter case or the explicit port 443.
	u.Host = origin
	return u.String(), ""
}

// resolvePath resolves a path against the origin.
func resolvePath(origin string, path *url.URL) (absolute, reason string) {
	if origin == "" {
		return "", "is relative to an origin that is missing"
	}
	base := &url.URL{Scheme: "https", Host: origin, Path: "/"}
	u := base.ResolveReference(path)
	if u.Host != origin || u.Scheme != "https" {
		return "", "is not of the origin"
	}
	return u.String(), ""
}

// isWebURL reports whether s is an https URL with a host and without user information.
func isWebURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil
}
