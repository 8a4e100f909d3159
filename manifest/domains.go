package manifest

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"repute"
)

// maxDomains bounds how many hosts one registration file makes a reader ask.
const maxDomains = 10

// Domains are the host names of a registration's http, https, ws and wss endpoints, which
// can prove at https://{domain}/.well-known/agent-registration.json that they know the
// agent: lower case, in ASCII, without user and port, each once, the first ten. Addresses
// and names of private networks are none.
func Domains(reg repute.Registration) []string {
	var out []string
	for _, s := range reg.Services {
		d, ok := domainOf(s.Endpoint)
		if ok && len(out) < maxDomains && !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

// domainOf returns the domain of an endpoint in the ASCII form that DNS uses; false for addresses
// and for schemes that no domain proof applies to.
func domainOf(endpoint string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
		return "", false
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), "."))
	if err != nil || !isDomain(name) {
		return "", false
	}
	return name, true
}

// isDomain accepts names of the public DNS: letters, digits and hyphens, two labels
// at least, and no address in disguise.
func isDomain(name string) bool {
	labels := strings.Split(name, ".")
	last := labels[len(labels)-1]
	// No top-level domain begins with a digit; what does is an address (1.2.3, 0x7f.0x1).
	if len(name) > 253 || len(labels) < 2 || last == "" || last[0] < 'a' || last[0] > 'z' {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return !slices.Contains([]string{"local", "localhost", "internal", "onion", "arpa", "lan", "home"}, last)
}
