package searchtext

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// IsPlace reports whether a folded text names a host, a URL or an address.
func IsPlace(text string) bool {
	whole, _ := PlaceOf(text)
	return whole != ""
}

// PlaceOf returns what a text names among the places of a document. whole is an address, a host, or
// a URL without its scheme, as placesOf writes it; host is the host of a URL. Both are empty when
// the text names no place.
func PlaceOf(text string) (whole, host string) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "", ""
	}
	if i := strings.LastIndexByte(text, ':'); common.IsHexAddress(text[i+1:]) && strings.Contains(text, "0x") {
		return text[i+1:], ""
	}
	whole, host = endpointOf(text)
	if !strings.Contains(text, "://") && !isHost(host) && !isIP(host) {
		return "", ""
	}
	if whole == host {
		host = ""
	}
	return whole, host
}

// isHost reports whether a text can be an internet host: it has no path and no port, and its last
// label consists of letters.
func isHost(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i > 0 && !strings.ContainsAny(s, "/:") && len(s)-i > MinSearchText &&
		!strings.ContainsFunc(s[i+1:], func(r rune) bool { return !unicode.IsLetter(r) })
}

// endpointOf returns an endpoint in lower case without scheme, user, query and final slash, and its
// host without www.
func endpointOf(endpoint string) (whole, host string) {
	s := Lowered(endpoint, 4*maxSearchPlace)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "#")
	s, _, _ = strings.Cut(s, "?")
	authority, path, _ := strings.Cut(s, "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	host, authority = hostOf(strings.TrimPrefix(authority, "www."))
	return wholeHead(strings.TrimRight(authority+"/"+path, "/"), maxSearchPlace), host
}

// hostOf returns the host of an authority, "" where it has none, and the authority with an
// IP address in its shortest form.
func hostOf(authority string) (host, shortest string) {
	if ip, err := netip.ParseAddr(authority); err == nil {
		return ip.String(), ip.String()
	}
	u, err := url.Parse("//" + authority)
	if err != nil {
		return "", authority
	}
	host = strings.TrimSuffix(u.Hostname(), ".")
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return host, authority
	case u.Port() == "":
		return ip.String(), ip.String()
	}
	return ip.String(), net.JoinHostPort(ip.String(), u.Port())
}

// isIP reports whether a host is an IP address.
func isIP(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// placesOf returns where a document's services are: endpoints, their hosts with and without port,
// the domains of the hosts, and addresses.
func placesOf(services []repute.Service) []string {
	out := []string{}
	for _, s := range services {
		if len(out) == maxSearchList { // a document may have thousands
			break
		}
		whole, host := endpointOf(s.Endpoint)
		places := []string{whole}
		if i := strings.LastIndexByte(whole, ':'); common.IsHexAddress(whole[i+1:]) {
			places = append(places, whole[i+1:])
		}
		authority, _, _ := strings.Cut(whole, "/")
		if isIP(host) {
			places = append(places, authority, host)
		}
		if isHost(host) {
			places = append(places, authority)
		}
		for isHost(host) {
			places = append(places, host)
			_, host, _ = strings.Cut(host, ".")
		}
		for _, p := range places {
			if p != "" && len(out) < maxSearchList && !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// MinSearchText is the least length of a text to search for, in characters.
const MinSearchText = 2
