package x402

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Resource is what is paid for (section 5.1.2).
type Resource struct {
	URL         string   `json:"url"`
	Description string   `json:"description,omitempty"`
	MimeType    string   `json:"mimeType,omitempty"`
	ServiceName string   `json:"serviceName,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// Extensions are offered by a server and echoed by the client, by name. Each is an object with the
// members info and schema (section 6).
type Extensions map[string]json.RawMessage

// Payment is what a client sends to pay (section 5.2), of either version.
type Payment struct {
	Version  int       // V1 or V2; it decides in which form the payment is written
	Resource *Resource // nil where the client names none; version 1 has none
	// Accepted are the requirements that the client says it accepts: untrusted text, only to be compared. Version 1
	// gives scheme and network alone.
	Accepted   Requirements
	Payload    Payload
	Extensions Extensions // version 2
}

// Payload is the signed part of a payment on an EVM chain. Exactly one of Authorization and Permit2
// is set.
type Payload struct {
	Signature     hexutil.Bytes  `json:"signature"`
	Authorization *Authorization `json:"authorization,omitempty"`
	Permit2       *Permit        `json:"permit2Authorization,omitempty"`
}

// Authorization is a transfer by EIP-3009.
type Authorization struct {
	From        common.Address `json:"from"`
	To          common.Address `json:"to"`
	Value       Amount         `json:"value"`
	ValidAfter  Amount         `json:"validAfter"`  // seconds since 1970
	ValidBefore Amount         `json:"validBefore"` // seconds since 1970
	Nonce       common.Hash    `json:"nonce"`
}

// Permit is a transfer by Permit2 with a witness. The nonce is a bit of the payer's bitmap: its last byte is the place
// in a word, the bytes before it name the word.
type Permit struct {
	From      common.Address `json:"from"`
	Permitted Permitted      `json:"permitted"`
	Spender   common.Address `json:"spender"`
	Nonce     Amount         `json:"nonce"`
	Deadline  Amount         `json:"deadline"` // seconds since 1970
	Witness   Witness        `json:"witness"`
}

// Permitted is the most that a Permit moves.
type Permitted struct {
	Token  common.Address `json:"token"`
	Amount Amount         `json:"amount"`
}

// Witness fixes who is paid, from when on, and in the scheme upto who may settle.
type Witness struct {
	To          common.Address  `json:"to"`
	Facilitator *common.Address `json:"facilitator,omitempty"` // upto alone
	ValidAfter  Amount          `json:"validAfter"`            // seconds since 1970
}

// maxSignature bounds a signature in bytes. Those of contract wallets that are not deployed yet
// carry the call that deploys them.
const maxSignature = 16 << 10

// check refuses a payload that is neither of both.
func (p *Payload) check() error {
	switch {
	case (p.Authorization == nil) == (p.Permit2 == nil):
		return Refuse(ReasonInvalidPayload, "payload: exactly one of authorization and permit2Authorization is allowed")
	case len(p.Signature) == 0 || len(p.Signature) > maxSignature:
		return Refuse(ReasonInvalidPayload, "payload.signature has %d bytes: 1 to %d are allowed", len(p.Signature),
			maxSignature)
	}
	return nil
}

// Payer is the account that pays.
func (p *Payload) Payer() common.Address {
	switch {
	case p.Authorization != nil:
		return p.Authorization.From
	case p.Permit2 != nil:
		return p.Permit2.From
	}
	return common.Address{}
}

// Until is when the authorization ends, in seconds since 1970.
func (p *Payload) Until() Amount {
	switch {
	case p.Authorization != nil:
		return p.Authorization.ValidBefore
	case p.Permit2 != nil:
		return p.Permit2.Deadline
	}
	return Amount{}
}

// Since is when the payment's authorization begins, in seconds since 1970.
func (p *Payload) Since() Amount {
	switch {
	case p.Authorization != nil:
		return p.Authorization.ValidAfter
	case p.Permit2 != nil:
		return p.Permit2.Witness.ValidAfter
	}
	return Amount{}
}

// paymentV1 is the form of version 1.
type paymentV1 struct {
	X402Version int     `json:"x402Version"`
	Scheme      string  `json:"scheme"`
	Network     string  `json:"network"`
	Payload     Payload `json:"payload"`
}

// paymentV2 is the form of version 2.
type paymentV2 struct {
	X402Version int          `json:"x402Version"`
	Resource    *Resource    `json:"resource,omitempty"`
	Accepted    Requirements `json:"accepted"`
	Payload     Payload      `json:"payload"`
	Extensions  Extensions   `json:"extensions,omitempty"`
}

// MarshalJSON writes the form of the payment's version.
func (p Payment) MarshalJSON() ([]byte, error) {
	if p.Version == V1 {
		network := p.Accepted.Network
		if id, err := ChainOf(network); err == nil && Slug(id) != "" {
			network = Slug(id)
		}
		return json.Marshal(paymentV1{V1, p.Accepted.Scheme, network, p.Payload})
	}
	return json.Marshal(paymentV2{V2, p.Resource, p.Accepted, p.Payload, p.Extensions})
}

// UnmarshalJSON reads the form of the version that the text names.
func (p *Payment) UnmarshalJSON(raw []byte) error {
	var v struct {
		X402Version int `json:"x402Version"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return Refuse(ReasonInvalidPayload, "%v", err)
	}
	switch v.X402Version {
	case V1:
		var old paymentV1
		if err := json.Unmarshal(raw, &old); err != nil {
			return Refuse(ReasonInvalidPayload, "%v", err)
		}
		id, err := ChainOf(old.Network)
		if err != nil {
			return err
		}
		*p = Payment{Version: V1, Payload: old.Payload,
			Accepted: Requirements{Scheme: old.Scheme, Network: Network(id)}}
	case V2:
		var now paymentV2
		if err := json.Unmarshal(raw, &now); err != nil {
			return Refuse(ReasonInvalidPayload, "%v", err)
		}
		*p = Payment{Version: V2, Resource: now.Resource, Accepted: now.Accepted, Payload: now.Payload,
			Extensions: now.Extensions}
	default:
		return Refuse(ReasonInvalidVersion, "x402Version %d: 1 and 2 are supported", v.X402Version)
	}
	return p.Payload.check()
}

// Settlement is what a facilitator says of a settlement (section 5.3), of either version. Success and ErrorReason
// exclude each other. Network is the name of CAIP-2, except in what version 1 sends.
type Settlement struct {
	Success     bool       `json:"success"`
	ErrorReason Reason     `json:"errorReason,omitempty"`
	ErrorText   string     `json:"errorMessage,omitempty"`
	Payer       string     `json:"payer,omitempty"`
	Transaction string     `json:"transaction"` // hash; "" where there is none
	Network     string     `json:"network"`
	Amount      *Amount    `json:"amount,omitempty"` // what was charged
	Extensions  Extensions `json:"extensions,omitempty"`
	// Dead says of a refused payment that the chain proves its end: its authorization moved nothing and no
	// longer can. Facilitators that are asked over HTTP cannot say it.
	Dead bool `json:"-"`
}

// Verification is what a facilitator says of a payment that it did not settle (section 5.4).
type Verification struct {
	IsValid       bool   `json:"isValid"`
	InvalidReason Reason `json:"invalidReason,omitempty"`
	InvalidText   string `json:"invalidMessage,omitempty"`
	Payer         string `json:"payer,omitempty"` // address; "" where it is not known
}

// Kind is a way to pay that a facilitator supports.
type Kind struct {
	X402Version int             `json:"x402Version"`
	Scheme      string          `json:"scheme"`
	Network     string          `json:"network"`
	Extra       json.RawMessage `json:"extra,omitempty"`
}

// Supported is what a facilitator supports (section 7.3). Signers are its accounts by CAIP-2
// pattern.
type Supported struct {
	Kinds      []Kind              `json:"kinds"`
	Extensions []string            `json:"extensions"`
	Signers    map[string][]string `json:"signers"` // eip155:* stands for all EVM chains
}
