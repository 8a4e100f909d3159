package manifest

import (
	"mime"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"repute"
)

// endpoint reports an endpoint that leads nowhere, or where no reader should go. What
// it has to be depends on the service: whatever is called web, MCP, A2A or OASF is
// reached by a URL, others may have an identifier.
func (r *reader) endpoint(name, endpoint, path string) {
	scheme := schemeOf(endpoint)
	kind := strings.ToLower(strings.TrimSpace(name))
	r.template(endpoint, path)
	r.credentials(endpoint, path)
	switch {
	case endpoint == "":
	case isActive(scheme, endpoint):
		r.add(CodeEndpointScheme, path, "%.80q runs or shows something instead of reaching a service", endpoint)
	case kind == "email":
		r.email(endpoint, path)
	case kind == "agentwallet" || kind == "wallet":
		r.wallet(endpoint, path)
	case slices.Contains([]string{"web", "mcp", "a2a", "oasf"}, kind):
		r.reached(scheme, endpoint, path)
	case isWeb(scheme):
		r.host(scheme, endpoint, path)
	}
}

// reached judges an endpoint that must be a URL.
func (r *reader) reached(scheme, endpoint, path string) {
	switch {
	case isWeb(scheme):
		if u, err := url.Parse(strings.TrimSpace(endpoint)); err != nil || u.Hostname() == "" {
			r.add(CodeEndpointNotURL, path, "%.80q is not a URL with a host", endpoint)
			return
		}
		r.host(scheme, endpoint, path)
	case scheme == "":
		r.add(CodeEndpointNotURL, path, "%.80q is not a URL", endpoint)
	case isContent(scheme) || scheme == "data":
	default:
		r.add(CodeEndpointScheme, path, "nothing reaches a service at a %.20s: URL", scheme)
	}
}

// host judges where an http or websocket URL leads.
func (r *reader) host(scheme, endpoint, path string) {
	u, err := url.Parse(strings.TrimSpace(endpoint))
	switch {
	case err != nil:
	case isLocal(u.Hostname()):
		r.add(CodeEndpointLocal, path, "%.80q leads into a private network", u.Host)
	case scheme == "http" || scheme == "ws":
		r.add(CodePlainHTTP, path, "plain %s", scheme)
	}
}

// email reports an endpoint that is no bare address: a display name or a list cannot be written to
// by a program.
func (r *reader) email(endpoint, path string) {
	plain := strings.TrimPrefix(strings.TrimSpace(endpoint), "mailto:")
	if a, err := mail.ParseAddress(plain); err != nil || a.Address != plain {
		r.add(CodeEmailForm, path, "%.80q is no e-mail address", endpoint)
	}
}

// walletAt is an EVM account that a service gives as its wallet, and where.
type walletAt struct {
	account repute.Account
	path    string
}

// wallet accepts accounts of any chain (CAIP-10) and checks those of EVM chains.
func (r *reader) wallet(endpoint, path string) {
	account, err := repute.ParseAccount(strings.ToLower(endpoint))
	switch {
	case err == nil:
		r.checksum(endpoint, path)
		r.wallets = append(r.wallets, walletAt{account, path})
	case !isForeignAccount(endpoint):
		r.add(CodeWalletForm, path, "%.80q is no account", endpoint)
	}
}

// image reports what no reader would load as an image.
func (r *reader) image(image string) {
	scheme := schemeOf(image)
	r.template(image, "/image")
	switch {
	case scheme == "data":
		if media := mediaType(image); !strings.HasPrefix(media, "image/") {
			r.add(CodeImageNotURL, "/image", "a data: URL of %.40q, not of an image", media)
		}
	case scheme == "http":
		r.host(scheme, image, "/image")
	case scheme != "https" && !isContent(scheme) || !isURL(image):
		r.add(CodeImageNotURL, "/image", "%.80q is not a URL of an image", image)
	}
}

// trust reads the trust models. Others than the standard's are allowed, but a reader
// will hardly know them.
func (r *reader) trust(o *object) []string {
	raw, found := o.takeAlias("supportedTrust", "supportedTrusts")
	if found == "" {
		return nil
	}
	list := o.stringsAt(raw, found, maxTrust)
	for _, model := range list {
		if !slices.Contains([]string{"reputation", "crypto-economic", "tee-attestation"}, strings.ToLower(model)) {
			r.add(CodeTrustUnknown, o.at(found), "%.80q is none of the standard's", model)
		}
	}
	return list
}

// schemeOf is the scheme in lower case as a browser finds it: control characters and
// blanks before and in it do not hide it. Empty without one.
func schemeOf(s string) string {
	before, _, ok := strings.Cut(s[:min(len(s), 64)], ":")
	if !ok {
		return ""
	}
	before = strings.ToLower(strings.Map(func(c rune) rune {
		if c <= ' ' {
			return -1
		}
		return c
	}, before))
	if before == "" || before[0] < 'a' || before[0] > 'z' ||
		strings.Trim(before, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return ""
	}
	return before
}

// isContent reports whether a scheme names content that public gateways serve.
func isContent(scheme string) bool { return scheme == "ipfs" || scheme == "ipns" || scheme == "ar" }

// isWeb reports whether an endpoint of this scheme is reached over HTTP or WebSocket.
func isWeb(scheme string) bool {
	return scheme == "https" || scheme == "http" || scheme == "wss" || scheme == "ws"
}

// isActive reports whether following a URL runs a script, or opens a file or a page of the URL's
// own content.
func isActive(scheme, endpoint string) bool {
	switch scheme {
	case "javascript", "vbscript", "file", "blob", "about", "view-source":
		return true
	case "data":
		media := mediaType(endpoint)
		return media != "application/json" && media != "text/plain"
	}
	return false
}

// mediaType is the type a data: URL declares, text/plain without one.
func mediaType(uri string) string {
	_, rest, _ := strings.Cut(uri[:min(len(uri), 256)], ":")
	declared, _, _ := strings.Cut(rest, ",")
	declared, _, _ = strings.Cut(declared, ";")
	media, _, err := mime.ParseMediaType(declared)
	if err != nil {
		return "text/plain"
	}
	return media
}

// isLocal reports whether a host can be reached only by the author.
func isLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsUnspecified()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return slices.Contains([]string{"localhost", "local", "internal", "lan", "home", "arpa"}, last)
}
