package x402

import (
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Versions of the protocol.
const (
	V1 = 1
	V2 = 2
)

// Schemes of payment.
const (
	SchemeExact = "exact" // the payer signs the price
	SchemeUpto  = "upto"  // the payer signs a maximum; the price is known after the work
)

// Ways by which the scheme exact moves tokens, named in Requirements.Extra as assetTransferMethod.
const (
	MethodEIP3009 = "eip3009" // by the token's own transferWithAuthorization; the default
	MethodPermit2 = "permit2" // by Permit2, for any ERC-20 token
)

// Requirements are one way to pay: an item of accepts (section 5.1.2). The chain is named by
// CAIP-2. Of version 1 they are read by RequirementsV1.
type Requirements struct {
	Scheme            string          `json:"scheme"`
	Network           string          `json:"network"`
	Amount            Amount          `json:"amount"` // smallest units; of upto the most, then the charge
	Asset             common.Address  `json:"asset"`  // the token's contract
	PayTo             common.Address  `json:"payTo"`
	MaxTimeoutSeconds int64           `json:"maxTimeoutSeconds"` // how long a payment may be settled after it is signed
	Extra             json.RawMessage `json:"extra,omitempty"`   // see Extra; kept as it came
}

// Extra is what the EVM schemes define of Requirements.Extra.
type Extra struct {
	// Name and Version are those of the token's EIP-712 domain. EIP-3009 needs both.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Method is MethodEIP3009 where it is empty.
	Method string `json:"assetTransferMethod,omitempty"`
	// Facilitator is the account that may settle payments of the scheme upto.
	Facilitator *common.Address `json:"facilitatorAddress,omitempty"`
}

// JSON returns the form that Requirements have.
func (e Extra) JSON() (json.RawMessage, error) { return json.Marshal(e) }

// Terms reads Extra, whose other members are ignored.
func (r *Requirements) Terms() (e Extra, err error) {
	if len(r.Extra) > 0 {
		if err := json.Unmarshal(r.Extra, &e); err != nil {
			return e, Refuse(ReasonInvalidRequirements, "extra: %v", err)
		}
	}
	return e, nil
}

// Check refuses requirements that this package cannot serve.
func (r *Requirements) Check() error {
	if _, err := ChainOf(r.Network); err != nil {
		return err
	}
	terms, err := r.Terms()
	switch {
	case err != nil:
		return err
	case r.Scheme != SchemeExact && r.Scheme != SchemeUpto:
		return Refuse(ReasonUnsupportedScheme, "scheme %.40q: exact and upto are supported", r.Scheme)
	case r.Asset == common.Address{} || r.PayTo == common.Address{}:
		return Refuse(ReasonInvalidRequirements, "asset and payTo must be addresses other than zero")
	case r.MaxTimeoutSeconds <= 0 || r.MaxTimeoutSeconds > maxTimeout:
		return Refuse(ReasonInvalidRequirements, "maxTimeoutSeconds is %d: 1 to %d is allowed", r.MaxTimeoutSeconds,
			maxTimeout)
	case r.Scheme == SchemeUpto:
		return nil // by Permit2 alone
	case terms.Method != "" && terms.Method != MethodEIP3009 && terms.Method != MethodPermit2:
		return Refuse(ReasonInvalidRequirements, "extra.assetTransferMethod %.40q: eip3009 and permit2 are supported",
			terms.Method)
	case terms.Method != MethodPermit2 && (terms.Name == "" || terms.Version == ""):
		return Refuse(ReasonInvalidRequirements, "extra: name and version of the token's EIP-712 domain are missing")
	}
	return nil
}

// maxTimeout bounds maxTimeoutSeconds: nobody signs for longer than a week.
const maxTimeout = 7 * 24 * 3600

// samePrice reports whether two requirements demand the same: scheme, chain, amount, asset and
// payee. What a payment echoes as accepted is compared by it and never used.
func (r *Requirements) samePrice(o *Requirements) bool {
	a, err := ChainOf(r.Network)
	b, err2 := ChainOf(o.Network)
	return err == nil && err2 == nil && a == b && r.Scheme == o.Scheme && r.Amount == o.Amount && r.Asset == o.Asset &&
		r.PayTo == o.PayTo
}

// RequirementsV1 are one way to pay in version 1, where the resource is part of them.
type RequirementsV1 struct {
	Scheme            string          `json:"scheme"`
	Network           string          `json:"network"`
	MaxAmountRequired Amount          `json:"maxAmountRequired"`
	Asset             common.Address  `json:"asset"`
	PayTo             common.Address  `json:"payTo"`
	Resource          string          `json:"resource"`
	Description       string          `json:"description"`
	MimeType          string          `json:"mimeType"`
	OutputSchema      json.RawMessage `json:"outputSchema,omitempty"`
	MaxTimeoutSeconds int64           `json:"maxTimeoutSeconds"`
	Extra             json.RawMessage `json:"extra,omitempty"`
}

// V2 returns the same as requirements of version 2. The error is a *Refusal where the network is
// not known.
func (r *RequirementsV1) V2() (Requirements, error) {
	id, err := ChainOf(r.Network)
	return Requirements{Scheme: r.Scheme, Network: Network(id), Amount: r.MaxAmountRequired, Asset: r.Asset,
		PayTo: r.PayTo, MaxTimeoutSeconds: r.MaxTimeoutSeconds, Extra: r.Extra}, err
}

// V1 returns the same as requirements of version 1 for a resource. The network keeps its CAIP-2
// name where version 1 has none.
func (r *Requirements) V1(of Resource) RequirementsV1 {
	network := r.Network
	if id, err := ChainOf(network); err == nil && Slug(id) != "" {
		network = Slug(id)
	}
	return RequirementsV1{Scheme: r.Scheme, Network: network, MaxAmountRequired: r.Amount, Asset: r.Asset,
		PayTo:    r.PayTo,
		Resource: of.URL, Description: of.Description, MimeType: of.MimeType, MaxTimeoutSeconds: r.MaxTimeoutSeconds,
		Extra: r.Extra}
}

// UnmarshalRequirements reads requirements in the form of a version.
func UnmarshalRequirements(raw json.RawMessage, version int) (r Requirements, err error) {
	if version == V1 {
		var old RequirementsV1
		if err := json.Unmarshal(raw, &old); err != nil {
			return r, Refuse(ReasonInvalidRequirements, "%v", err)
		}
		return old.V2()
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, Refuse(ReasonInvalidRequirements, "%v", err)
	}
	return r, nil
}

// MarshalRequirements writes requirements in the form of a version.
func MarshalRequirements(r Requirements, of Resource, version int) (json.RawMessage, error) {
	var v any = r
	if version == V1 {
		v = r.V1(of)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("requirements: %w", err)
	}
	return raw, nil
}
