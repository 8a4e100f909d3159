package resolver

import (
	"net/url"
	"strings"
)

// Kind is the form of a URI.
type Kind string

// Kinds of URIs.
const (
	KindEmpty       Kind = "empty"
	KindData        Kind = "data"
	KindJSON        Kind = "json" // the document itself in place of a URI
	KindHTTPS       Kind = "https"
	KindHTTP        Kind = "http"
	KindIPFS        Kind = "ipfs"
	KindUnsupported Kind = "unsupported"
)

// Ref is the information in the text of a URI, before anything is fetched.
type Ref struct {
	Kind Kind
	// Host is the key of the queue the fetch belongs in: HostOf for http(s), "ipfs"
	// for ipfs, else "". It is valid UTF-8 of at most 260 bytes.
	Host string
	// URL is the URI without surrounding blanks, as it is fetched.
	URL string
	// CID and Path locate an ipfs document. Path has no leading slash.
	CID  string
	Path string
	// Gateway is the origin of a gateway URL that was recognized as its CID, ""
	// otherwise. It is asked when the configured gateways fail.
	Gateway string
	// Reason is set for KindEmpty and KindUnsupported.
	Reason Reason
}

// Classify returns the form of a URI. It is pure and accepts any bytes.
func Classify(uri string) Ref {
	s := strings.TrimSpace(strings.TrimPrefix(uri, "\ufeff"))
	switch {
	case s == "":
		return Ref{Kind: KindEmpty, Reason: ReasonEmpty}
	case s[0] == '{' || s[0] == '[':
		return Ref{Kind: KindJSON, URL: s}
	case hasScheme(s, "data:"):
		return Ref{Kind: KindData, URL: s}
	case hasScheme(s, "https://"), hasScheme(s, "http://"):
		return classifyWeb(s)
	case hasScheme(s, "ipfs:"):
		return classifyIPFS(s, strings.TrimLeft(s[len("ipfs:"):], "/"))
	}
	return classifyRest(s)
}

// hasScheme compares without regard to case and without allocating: data: URIs
// may be long.
func hasScheme(s, scheme string) bool {
	return len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme)
}

// classifyWeb parses a URL with http or https. One on a known gateway is an ipfs document.
func classifyWeb(s string) Ref {
	u, err := url.Parse(s)
	// The host becomes a key, so it must be storable: no DNS name is longer.
	if err != nil || u.Hostname() == "" || storable(u.Host, maxHostText) != u.Host || canonicalHost(u) == "" {
		return Ref{Kind: KindUnsupported, URL: s, Reason: ReasonBadURL}
	}
	if ref, ok := gatewayRef(u); ok {
		ref.URL = s
		return ref
	}
	return Ref{Kind: Kind(u.Scheme), Host: canonicalHost(u), URL: s}
}

// classifyIPFS parses the text after ipfs:.
func classifyIPFS(s, rest string) Ref {
	rest = strings.TrimPrefix(rest, "ipfs/")
	id, path, err := parseCIDPath(rest)
	if err != nil {
		return Ref{Kind: KindUnsupported, URL: s, Reason: ReasonBadCID}
	}
	return Ref{Kind: KindIPFS, Host: "ipfs", URL: s, CID: id.String(), Path: path}
}

// classifyRest classifies texts without a supported scheme: a bare CID, another scheme, or a text
// that is no URI.
func classifyRest(s string) Ref {
	bare := strings.TrimPrefix(strings.TrimPrefix(s, "/"), "ipfs/")
	// Shorter strings can be valid CIDs by chance; no strong hash is this short.
	if len(bare) >= 46 {
		if ref := classifyIPFS(s, bare); ref.Kind == KindIPFS {
			return ref
		}
	}
	if scheme, _, ok := strings.Cut(s, ":"); ok && isScheme(scheme) {
		return Ref{Kind: KindUnsupported, URL: s, Reason: ReasonUnsupportedScheme}
	}
	return Ref{Kind: KindUnsupported, URL: s, Reason: ReasonNotURI}
}

// isScheme reports whether a text can be the scheme of a URI (RFC 3986).
func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		letter := c >= 'a' && c <= 'z'
		rest := s[i] >= '0' && s[i] <= '9' || s[i] == '+' || s[i] == '-' || s[i] == '.'
		if !letter && (i == 0 || !rest) {
			return false
		}
	}
	return len(s) > 1 // one letter and a colon is a drive letter
}
