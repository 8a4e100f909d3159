package store

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// isAgentID reports whether a folded text is an agent's id with its chain.
func isAgentID(text string) bool {
	ref, err := repute.ParseAgentRef(text)
	return err == nil && ref.ChainID != 0
}

// matchID finds the agent whose id the text is.
func (q *agentQuery) matchID(text string) {
	ref, err := repute.ParseAgentRef(text)
	if err != nil || ref.ChainID == 0 {
		return
	}
	sql := fmt.Sprintf("select a.*, %d as class from agents a where a.chain_id = any($1::bigint[]) and (a.chain_id, a.token_id) = (%s::bigint, %s::numeric)",
		classChain, q.arg(ref.ChainID), q.arg(bigNum{Int: ref.TokenID.ToBig()}))
	if ref.Registry != nil {
		sql += " and exists (select from chains c where c.chain_id = a.chain_id and c.identity = " + q.arg(ref.Registry.Bytes()) + ")"
	}
	q.match.agents = append(q.match.agents, sql)
}

// matchPlace finds a host, a URL or an address: among endpoints, and an agent's own.
func (q *agentQuery) matchPlace(text, typed string) {
	whole, host := placeOf(text)
	if whole == "" {
		return
	}
	m := q.match
	for _, place := range []struct {
		value string
		class int
	}{{whole, classExact}, {host, classHost}} {
		if place.value == "" {
			continue
		}
		at := "s.places @> array[" + q.arg(place.value) + "::text]"
		m.parts, m.class = append(m.parts, at), fmt.Sprintf("%s when %s then %d", m.class, at, place.class)
	}
	limit := fmt.Sprintf(" limit %d", maxHits)
	own := fmt.Sprintf("select a.*, %d as class from agents a where a.chain_id = any($1::bigint[]) and ", classChain)
	if common.IsHexAddress(whole) {
		address := q.arg(common.HexToAddress(whole).Bytes())
		m.agents = append(m.agents, own+"a.owner = "+address+limit, own+"a.wallet = "+address+" and a.wallet <> ''"+limit)
	} else if strings.Contains(text, "://") {
		m.agents = append(m.agents, own+"a.uri_id in (select id from uris where hash = any("+q.arg(urisLike(typed))+"))"+limit)
	}
}

// urisLike are the hashes of URIs that a pasted URL may be: with and without final slash,
// exactly as it was typed otherwise.
func urisLike(typed string) [][]byte {
	bare := strings.TrimRight(strings.TrimSpace(typed), "/")
	one, other := sha(bare), sha(bare+"/")
	return [][]byte{one[:], other[:]}
}

// isPlace reports whether a folded text names a host, a URL or an address.
func isPlace(text string) bool {
	whole, _ := placeOf(text)
	return whole != ""
}

// placeOf is what a text names among the places of a document: whole is an address, a
// host or a URL without its scheme, as placesOf writes it, host is a URL's. Both are ""
// of a text that names no place.
func placeOf(text string) (whole, host string) {
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

// isHost reports whether a text can be a host of the internet: it has no path and no port,
// and its last label is of letters.
func isHost(s string) bool {
	i := strings.LastIndexByte(s, '.')
	return i > 0 && !strings.ContainsAny(s, "/:") && len(s)-i > minSearchText && !strings.ContainsFunc(s[i+1:], func(r rune) bool { return !unicode.IsLetter(r) })
}

// endpointOf is an endpoint in lower case without scheme, user, query and final slash,
// and its host without www.
func endpointOf(endpoint string) (whole, host string) {
	s := lowered(endpoint, 4*maxSearchPlace)
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

// placesOf are where a document's services are: endpoints, their hosts with and without
// port, the domains these are in, and addresses.
func placesOf(services []repute.Service) []string {
	var out []string
	for _, s := range services {
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
