package identity

import (
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httprule"
	"repute/store/trustdb"
	"repute/trust"
)

// Of returns what an agent's files say about its identity. wallet is the chain's.
func Of(id repute.AgentID, wallet common.Address, t trustdb.Identity) *trust.Identity {
	out := &trust.Identity{Resolves: lacksRegistration(t.Document) == "" && !t.Gone, Gone: t.Gone, Wallet: wallet}
	hosts := Hosts(t.Document.Registration)
	out.Declares = Declares(id, wallet, t.Document.Registration)
	if sum := t.Document.SHA256; sum != [32]byte{} {
		out.File = &trust.ReadDocument{SHA256: sum, ParserVersion: t.ParserVersion}
	}
	for _, p := range t.Proofs {
		hosts[p.Domain] = true
		if p.Result == repute.DomainProven {
			out.Proven++
		}
		if sum := common.Hash(p.SHA256); sum != (common.Hash{}) && !slices.Contains(out.Proofs, sum) {
			out.Proofs = append(out.Proofs, sum)
		}
	}
	out.Domains = len(hosts)
	slices.SortFunc(out.Proofs, common.Hash.Cmp)
	return out
}

// Hosts returns the hosts of all endpoints of a registration file that are URLs with one, in
// lower case and ASCII. More of them than are ever asked, addresses, other schemes and what
// only some readers take for a URL cannot be proven, and are not passed over.
func Hosts(r *repute.Registration) map[string]bool {
	out := map[string]bool{}
	if r == nil {
		return out
	}
	for _, s := range r.Services {
		endpoint := strings.TrimSpace(s.Endpoint)
		scheme, _, isURL := strings.Cut(endpoint, "://")
		if !isURL || slices.Contains([]string{"ipfs", "ipns", "ar"}, strings.ToLower(scheme)) {
			continue // found by its content, or no URL
		}
		host := endpoint
		if u, err := url.Parse(endpoint); err == nil {
			host = u.Hostname()
		}
		out[httprule.Host(host)] = true
	}
	return out
}

// Declares reports whether a registration file names the agent's wallet.
func Declares(id repute.AgentID, wallet common.Address, r *repute.Registration) bool {
	if r == nil {
		return false
	}
	own := &operatorMembers{Operator: member(r.Extra, "operatorWallet")}
	return lacksOperator(repute.Agent{ID: id, Wallet: wallet, Document: repute.Document{Registration: r}}, own) == ""
}
