package control

import (
	"context"
	"crypto/ecdsa"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator/trustgate"
	"repute/store/query"
)

// IdentityProof is the consent of an agent's wallet or owner that a program works under
// the agent's identity: a personal message (EIP-191) with the text of ClaimText.
type IdentityProof struct {
	Expires   int64  `json:"expires" doc:"seconds since 1970, at most an hour ahead; part of what is signed"`
	Signature string `json:"signature" doc:"65 bytes in hex: a personal message (EIP-191) signed by the agent's wallet or owner"`
}

// maxConsent is the longest validity of an IdentityProof.
const maxConsent = time.Hour

// ClaimText returns the text that the agent's wallet or owner signs, with the expiry in seconds since 1970. The
// registry is the indexed one of the chain. It names slug and URL, so that a signature serves for no other
// registration.
func ClaimText(slug, url string, id repute.AgentID, expires int64) string {
	return fmt.Sprintf("repute: agent %s at %s works as %d:%s\nexpires: %d", slug, url, id.ChainID, id.TokenID.String(),
		expires)
}

// proofFix is the hint for a missing proof.
const proofFix = "serve it over https at a domain that the agent's registration file names and that names the agent in /.well-known/agent-registration.json, or sign with its wallet's or owner's key (agent run --key-file; docs/reference/agents.md)"

// proven checks that the program acts for its identity, and returns the proof. repute.ErrInvalid
// says what is missing.
func (c *Control) proven(ctx context.Context, r AgentRegistration, id repute.AgentID,
	now time.Time) (p repute.ModuleProof,
	err error) {
	if r.Proof != nil {
		a, _, err := query.Agent(ctx, c.db, id, repute.At{Finality: repute.Latest})
		if err != nil {
			return p, err
		}
		by, err := r.Proof.check(ClaimText(r.Slug, r.URL, id, r.Proof.Expires), a, now)
		return repute.ModuleProof{Kind: repute.ProofSignature, Signer: by, At: now}, err
	}
	proofs, err := query.DomainProofs(ctx, c.db, id)
	if err != nil {
		return p, err
	}
	if host := secureHost(r.URL); trustgate.ProvenAt(proofs[id], host) {
		return repute.ModuleProof{Kind: repute.ProofDomain, Host: host, At: now}, nil
	}
	return p, repute.Invalid("proof",
		fmt.Sprintf("is missing: nothing shows that this program speaks for agent %s", id),
		proofFix)
}

// secureHost returns the host of an https URL with the usual port, otherwise an empty text.
func secureHost(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Port() != "" && u.Port() != "443" {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// Prove signs that a program works as an agent, with the key of the agent's wallet or owner.
func Prove(key *ecdsa.PrivateKey, slug, url string, id repute.AgentID, now time.Time) (*IdentityProof, error) {
	p := &IdentityProof{Expires: now.Add(maxConsent / 4).Unix()}
	signature, err := crypto.Sign(accounts.TextHash([]byte(ClaimText(slug, url, id, p.Expires))), key)
	if err != nil {
		return nil, fmt.Errorf("sign the proof of an identity: %w", err)
	}
	p.Signature = hexutil.Encode(signature)
	return p, nil
}

// check refuses a consent that is not signed by the agent's wallet or owner, or that has expired, and returns the
// signer. The owner counts only where the chain names it: a claimed one is what a file says. Wallets that are
// contracts cannot sign it, as nothing is asked of a chain here.
func (p *IdentityProof) check(text string, a repute.Agent, now time.Time) (by common.Address, err error) {
	until := time.Unix(p.Expires, 0)
	if until.Before(now) || until.After(now.Add(maxConsent)) {
		return by, repute.Invalid("proof.expires", fmt.Sprintf("%d is past or more than an hour ahead", p.Expires),
			"seconds since 1970, at most an hour ahead, as signed")
	}
	by, err = signerOf(text, p.Signature)
	if err != nil {
		return by, repute.Invalid("proof.signature", err.Error(), "65 bytes in hex")
	}
	if by == (common.Address{}) || by != a.Wallet && (by != a.Owner || a.OwnerClaimed) {
		return by, repute.Invalid("proof.signature",
			fmt.Sprintf("is of %s, which is neither wallet nor owner of agent %s",
				by, a.ID), fmt.Sprintf("sign exactly %q", text))
	}
	return by, nil
}

// signerOf recovers the signer of a text that was signed by personal_sign (ERC-191).
func signerOf(text, signature string) (common.Address, error) {
	b, err := hexutil.Decode(signature)
	if err != nil || len(b) != crypto.SignatureLength {
		return common.Address{}, fmt.Errorf("is no signature")
	}
	if b[64] >= 27 {
		b[64] -= 27
	}
	key, err := crypto.SigToPub(accounts.TextHash([]byte(text)), b)
	if err != nil {
		return common.Address{}, fmt.Errorf("is no signature")
	}
	return crypto.PubkeyToAddress(*key), nil
}
