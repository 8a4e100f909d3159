package trust

import (
	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/rating"
)

// unchecked is what an agent lacks whose identity nobody looked at.
const unchecked = "checked"

// Identity is what the checks of an agent's identity found. It is part of the manifest of
// evidence: what a file said then is not what it says today.
type Identity struct {
	Resolves bool           `json:"resolves"`
	Declares bool           `json:"declares"` // Wallet, which the chain had, zero for none
	Wallet   common.Address `json:"wallet"`
	Domains  int            `json:"domains"` // hosts that the file's endpoints use, also those that nobody asked
	Proven   int            `json:"proven"`  // of these, those that stand by the agent
	// Gone: the host of a file that was read gives it no more, so that it does not resolve.
	Gone bool `json:"gone,omitempty"`
	// File is the registration file, nil where none can be shown; Proofs are the files of
	// domains that were read, by sha256.
	File   *ReadDocument `json:"file,omitempty"`
	Proofs []common.Hash `json:"proofs,omitempty"`
}

// ReadDocument is an entry of an evidence manifest: bytes that were used and what
// read them.
type ReadDocument struct {
	SHA256        common.Hash `json:"sha256"`
	ParserVersion int         `json:"parserVersion"` // 0: nothing but the members named here
}

// lacksIdentity calls lack for each check of a gate that the agent does not pass, with the number that it has and the
// number that it needs. i is nil when the checks were not made.
func lacksIdentity(checks []string, i *Identity, lack func(what string, have, need fixed.Fixed)) {
	if i == nil && len(checks) > 0 {
		lack(unchecked, 0, fixed.One)
		return
	}
	for _, check := range checks {
		switch {
		case check == rating.CheckRegistration && !i.Resolves, check == rating.CheckWallet && !i.Declares:
			lack(check, 0, fixed.One)
		case check == rating.CheckDomains && i.Proven < i.Domains:
			lack(check, fixed.Int(i.Proven), fixed.Int(i.Domains))
		}
	}
}
