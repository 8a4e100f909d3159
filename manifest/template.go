package manifest

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// templateText matches what people forget to replace in the examples that they start
// from: QmYourImageHash, YOUR_API_KEY, <endpoint>, {{host}}, your-domain.com. One pair of
// braces is a URI template (RFC 6570), which an endpoint may be.
var templateText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(Qm|bafy)?your[-_ ]?(image|agent|api|domain|endpoint|server|site|website` +
		`|app|company|name|wallet|cid|hash|host|project)` +
		`|<[a-z][a-z0-9 _-]*>|\{\{[a-z][a-z0-9_.]*\}\}|\$\{[a-z][a-z0-9_.]*\}|\b(todo|changeme|lorem ipsum)\b`)
})

// isExampleHost reports whether a host is one of the domains reserved for documentation
// (RFC 2606): nobody serves an agent there.
func isExampleHost(host string) bool {
	labels := strings.Split(strings.ToLower(strings.TrimSuffix(host, ".")), ".")
	if len(labels) < 2 || labels[len(labels)-2] != "example" {
		return false
	}
	return slices.Contains([]string{"com", "net", "org"}, labels[len(labels)-1])
}

// template reports a value that was never replaced in an example.
func (r *reader) template(s, path string) {
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case s == "" || strings.HasPrefix(s, "data:"):
	case templateText().MatchString(s):
		r.add(CodeTemplate, path, "%.80q was not replaced", s)
	case err == nil && isExampleHost(u.Hostname()):
		r.add(CodeTemplate, path, "%s is a host of examples", u.Hostname())
	}
}

// templateWallets reports wallets that are the registry, which is what the standard's example
// shows next to them, or nobody's.
func (r *reader) templateWallets(registrations []repute.RegistrationLink) {
	for _, w := range r.wallets {
		switch {
		case w.account.Address == common.Address{}:
			r.add(CodeTemplate, w.path, "the wallet is the zero address")
		case namesRegistry(registrations, w.account):
			r.add(CodeTemplate, w.path, "the wallet is the registry")
		}
	}
}

// namesRegistry reports whether a registration gives the account as a registry.
func namesRegistry(registrations []repute.RegistrationLink, account repute.Account) bool {
	return slices.ContainsFunc(registrations, func(link repute.RegistrationLink) bool {
		registry, err := repute.ParseAccount(strings.ToLower(link.Registry))
		return err == nil && registry.Address == account.Address
	})
}

// secretParameters are names under which keys stand in the query of a URL.
var secretParameters = []string{"key", "apikey", "token", "accesstoken", "authtoken", "secret", "clientsecret",
	"password", "auth"}

// leastSecret is the length from which such a parameter is taken for a key: shorter ones
// choose something (?key=en).
const leastSecret = 8

// credentials reports a URL that gives its reader's rights away: everybody can read the
// file.
func (r *reader) credentials(endpoint, path string) {
	u, err := url.Parse(strings.TrimSpace(endpoint))
	if err != nil || !isWeb(strings.ToLower(u.Scheme)) {
		return
	}
	if _, set := u.User.Password(); set {
		r.add(CodeCredentials, path, "a password in the URL")
		return
	}
	query := u.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(secretParameters, plainName(name)) && len(query.Get(name)) >= leastSecret {
			r.add(CodeCredentials, path, "a key in the URL's parameter %.40q", name)
			return
		}
	}
}
