package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/net/idna"

	"repute"
	"repute/store"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/replay"
)

// identityOf returns what an agent's files say about its identity. wallet is the chain's.
func identityOf(id repute.AgentID, wallet common.Address, t trustdb.Identity) *trust.Identity {
	out := &trust.Identity{Resolves: lacksRegistration(t.Document) == "" && !t.Gone, Gone: t.Gone, Wallet: wallet}
	hosts := hostsOf(t.Document.Registration)
	out.Declares = declares(id, wallet, t.Document.Registration)
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
	slices.SortFunc(out.Proofs, func(a, b common.Hash) int { return bytes.Compare(a[:], b[:]) })
	return out
}

// hostsOf are the hosts of all endpoints of a registration file that are URLs with one, in
// lower case and ASCII. More of them than are ever asked, addresses, other schemes and what
// only some readers take for a URL cannot be proven, and are not passed over.
func hostsOf(r *repute.Registration) map[string]bool {
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
			host = strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		}
		if ascii, err := idna.Lookup.ToASCII(host); err == nil {
			host = ascii
		}
		out[host] = true
	}
	return out
}

// declares reports whether a registration file names the agent's wallet.
func declares(id repute.AgentID, wallet common.Address, r *repute.Registration) bool {
	if r == nil {
		return false
	}
	own := &operatorMembers{Operator: member(r.Extra, "operatorWallet")}
	return lacksOperator(repute.Agent{ID: id, Wallet: wallet, Document: repute.Document{Registration: r}}, own) == ""
}

// identities are what the checks found of agents that have scores: of final ones by the URIs
// of the run's block. None where no gate asks.
func (s *scoreRun) identities(ctx context.Context, subjects []*subject,
	final bool) (map[repute.TokenID]*trust.Identity, error) {
	if !s.basis.params.ChecksIdentity() {
		return nil, nil
	}
	of := map[repute.TokenID]*subject{}
	var tokens []repute.TokenID
	out := make(map[repute.TokenID]*trust.Identity, len(subjects))
	for _, one := range subjects {
		if id := one.Agent.TokenID; one.remembered && s.documented != nil && !s.documented[id] {
			out[id] = identityOf(one.Agent, one.Wallet, trustdb.Identity{}) // what no document says
			continue
		}
		of[one.Agent.TokenID] = one
		tokens = append(tokens, one.Agent.TokenID)
	}
	if len(tokens) == 0 {
		return out, nil
	}
	var at *uint64
	if final {
		at = &s.basis.run.Block.Number
	}
	err := trustdb.ReadIdentities(ctx, s.db, s.basis.run.ChainID, tokens, at,
		func(token repute.TokenID, t trustdb.Identity) {
			out[token] = identityOf(of[token].Agent, of[token].Wallet, t)
		})
	return out, err
}

// sameIdentity repeats the checks by the registration file that they used: a
// *PrunedError where its parse is gone or says otherwise. What no file tells, that a host
// was silent, is evidence by itself.
func (c *judged) sameIdentity(ctx context.Context, db *store.DB) error {
	i := c.evidence.Identity
	if i == nil || i.File == nil || i.File.ParserVersion == 0 {
		return nil
	}
	what := fmt.Sprintf("what version %d of the parser read in the file with sha256 %s", i.File.ParserVersion,
		i.File.SHA256)
	registration, sound, err := trustdb.RegistrationParse(ctx, db, i.File.SHA256, i.File.ParserVersion)
	if errors.Is(err, repute.ErrNotFound) {
		return &replay.PrunedError{What: what}
	}
	if err != nil {
		return err
	}
	known := i.Wallet == common.Address{} || slices.Contains(c.evidence.Self, i.Wallet)
	resolves := sound && !i.Gone
	if !known || resolves != i.Resolves || len(hostsOf(registration)) > i.Domains ||
		declares(c.evidence.Agent, i.Wallet, registration) != i.Declares {
		return &replay.PrunedError{What: what + " as it was then"}
	}
	return nil
}
