package trustgate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/journal"
	"repute/store"
	"repute/store/query"
)

// Proof is the proof that an agent's program acts for its identity, with the indexed data by which
// it is checked. Fault depends on nothing else.
type Proof struct {
	// Needed: in development, and of agents without identity, nothing has to be shown.
	Needed bool             `json:"needed"`
	URL    string           `json:"url,omitempty"` // of the program, empty for a part of the binary
	Kind   repute.ProofKind `json:"kind,omitempty"`
	Host   string           `json:"host,omitempty"`
	Signer *common.Address  `json:"signer,omitempty"`
	At     time.Time        `json:"at,omitzero"` // when it was shown
	// Wallet and Owner are the agent's, absent if the index has none that counts. Proven reports
	// whether Host and the agent's current file name each other.
	Wallet *common.Address `json:"wallet,omitempty"`
	Owner  *common.Address `json:"owner,omitempty"`
	Proven bool            `json:"hostProven,omitempty"`
}

// ProofOf returns the proof with which a module was registered.
func ProofOf(m repute.Module, needed bool) *Proof {
	return &Proof{Needed: needed, URL: m.URL, Kind: m.Proof.Kind, Host: m.Proof.Host, Signer: orNil(m.Proof.Signer),
		At: m.Proof.At}
}

// Look adds the currently indexed data by which the proof is checked.
func (p *Proof) Look(ctx context.Context, db *store.DB, id repute.AgentID) error {
	switch p.Kind {
	case repute.ProofSignature, repute.ProofKey:
		a, _, err := query.Agent(ctx, db, id, repute.At{Finality: repute.Latest})
		if err != nil {
			return fmt.Errorf("wallet and owner of agent %s: %w", id, err)
		}
		p.Wallet = orNil(a.Wallet)
		if !a.OwnerClaimed {
			p.Owner = orNil(a.Owner)
		}
	case repute.ProofDomain:
		proofs, err := query.DomainProofs(ctx, db, id)
		if err != nil {
			return fmt.Errorf("domains of agent %s: %w", id, err)
		}
		p.Proven = ProvenAt(proofs[id], p.Host)
	}
	return nil
}

// ProvenAt reports whether host is a proven domain of the agent.
func ProvenAt(proofs []repute.DomainProof, host string) bool {
	return host != "" &&
		slices.ContainsFunc(proofs, func(p repute.DomainProof) bool {
			return p.Result == repute.DomainProven &&
				p.Domain == host
		})
}

// Fault returns why the proof does not hold, with a hint; empty if it holds or none is needed.
func (p *Proof) Fault() string {
	speaks := p.Signer != nil && (p.Wallet != nil && *p.Signer == *p.Wallet || p.Owner != nil && *p.Signer == *p.Owner)
	switch {
	case !p.Needed || speaks || p.Kind == repute.ProofDomain && p.Proven:
		return ""
	case p.Kind == repute.ProofKey:
		return fmt.Sprintf("the configured key %s is neither wallet nor owner of the agent: configure the right one",
			p.Signer)
	case p.Kind == repute.ProofSignature:
		return fmt.Sprintf("%s, who signed for the program, is neither wallet nor owner of the agent any more: register the program again", p.Signer)
	case p.Kind == repute.ProofDomain:
		return fmt.Sprintf("%q and the agent's present registration file do not name each other any more: register the program again", p.Host)
	case p.URL == "":
		return "no key of the agent's wallet or owner is configured for this part of the program (orchestrator.wallets, identities)"
	}
	return "nothing shows that the program speaks for the agent: register it again, with a proof"
}

// Place returns the bytes to which a person's answer about a program is bound: its URL and the
// address or host that proves its identity.
func (p *Proof) Place() []byte {
	return journal.JSON([]any{p.URL, p.Kind, p.Host, p.Signer})
}
