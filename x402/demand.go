package x402

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// PaymentRequired is a demand of version 2 (section 5.1).
type PaymentRequired struct {
	X402Version int            `json:"x402Version"`
	Error       string         `json:"error,omitempty"`
	Resource    Resource       `json:"resource"`
	Accepts     []Requirements `json:"accepts"`
	Extensions  Extensions     `json:"extensions,omitempty"`
}

// maxAccepts bounds how many ways to pay a demand of another server may name. Own demands are not bounded by it.
const maxAccepts = 64

// check refuses a demand that is none of version 2.
func (d *PaymentRequired) check() error {
	switch {
	case d.X402Version != V2:
		return Refuse(ReasonInvalidVersion, "x402Version %d: 2 is allowed in this header", d.X402Version)
	case len(d.Accepts) == 0 || len(d.Accepts) > maxAccepts:
		return Refuse(ReasonInvalidRequirements, "accepts has %d items: 1 to %d are allowed", len(d.Accepts),
			maxAccepts)
	}
	return nil
}

// PaymentRequiredV1 is a demand of version 1: the body of the answer.
type PaymentRequiredV1 struct {
	X402Version int              `json:"x402Version"`
	Error       string           `json:"error"`
	Accepts     []RequirementsV1 `json:"accepts"`
}

// RuntimeDemand is a demand for clients of the Agent Runtime Specification (its section 5.1).
type RuntimeDemand struct {
	Address  string // the account to be paid
	Amount   string // decimal, in whole units of the currency
	Currency string // ETH, USDC
	Chain    string // base
	TaskHash string // 0x and 64 digits
}

// Demand is what a server asks for. One answer serves clients of both versions and, where Runtime
// is set, those of the Agent Runtime Specification.
type Demand struct {
	Resource   Resource
	Accepts    []Requirements
	Error      string // why a payment was not accepted; "" where there was none
	Message    string // for people; "payment required" where it is empty
	Extensions Extensions
	// OutputSchema describes request and answer for version 1.
	OutputSchema json.RawMessage
	Runtime      *RuntimeDemand
}

// runtimeBody is the body of the answer: a demand of version 1 that clients of the Agent Runtime
// Specification read too. It always has the error that those expect.
type runtimeBody struct {
	Error       string           `json:"error"`
	Message     string           `json:"message"`
	Reason      string           `json:"reason,omitempty"`
	X402Version int              `json:"x402Version"`
	Accepts     []RequirementsV1 `json:"accepts"`
}

// Required returns the demand of version 2.
func (d *Demand) Required() PaymentRequired {
	message := d.Error
	if message == "" {
		message = "payment required"
	}
	return PaymentRequired{X402Version: V2, Error: message, Resource: d.Resource, Accepts: d.Accepts,
		Extensions: d.Extensions}
}

// body returns the demand of version 1. Networks that version 1 does not know are left out: its
// clients refuse the whole demand because of one.
func (d *Demand) body() runtimeBody {
	b := runtimeBody{Error: "payment_required", Message: d.Message, Reason: d.Error, X402Version: V1,
		Accepts: []RequirementsV1{}}
	if b.Message == "" {
		b.Message = "payment required"
	}
	for i := range d.Accepts {
		old := d.Accepts[i].V1(d.Resource)
		id, err := ChainOf(d.Accepts[i].Network)
		if err != nil || Slug(id) == "" || old.Scheme != SchemeExact {
			continue
		}
		old.OutputSchema = d.OutputSchema
		b.Accepts = append(b.Accepts, old)
	}
	return b
}

// Write answers 402 with the demand.
func (d *Demand) Write(w http.ResponseWriter) error {
	return d.WriteStatus(w, http.StatusPaymentRequired)
}

// WriteStatus answers with the demand and another status, such as 412 for a missing allowance.
func (d *Demand) WriteStatus(w http.ResponseWriter, status int) error {
	text, err := Encode(d.Required())
	if err != nil {
		return err
	}
	body, err := json.Marshal(d.body())
	if err != nil {
		return fmt.Errorf("demand: %w", err)
	}
	h := w.Header()
	h.Set(HeaderRequired, text)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	if r := d.Runtime; r != nil {
		h.Set("X-Payment-Address", r.Address)
		h.Set("X-Payment-Amount", r.Amount)
		h.Set("X-Payment-Currency", r.Currency)
		h.Set("X-Payment-Chain", r.Chain)
		h.Set("X-Payment-TaskHash", r.TaskHash)
	}
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

// Match returns the own requirements that a payment is for. A payment of version 2 MUST echo the
// scheme, chain, amount, asset and payee of one of them; one of version 1 names scheme and chain,
// and the first that fits what was signed is taken. The error is a *Refusal.
func (d *Demand) Match(p *Payment) (Requirements, error) {
	chain, err := ChainOf(p.Accepted.Network)
	if err != nil {
		return Requirements{}, err
	}
	for _, own := range d.Accepts {
		id, err := ChainOf(own.Network)
		if err != nil || id != chain || own.Scheme != p.Accepted.Scheme {
			continue
		}
		signed := p.Payload.Authorization
		fits := p.Version == V1 && (len(d.Accepts) == 1 ||
			signed != nil && signed.To == own.PayTo && signed.Value == own.Amount)
		if fits || p.Version == V2 && own.samePrice(&p.Accepted) {
			return own, nil
		}
	}
	return Requirements{}, Refuse(ReasonInvalidRequirements,
		"accepted is none of the demanded ways to pay: copy an item of accepts")
}

// WriteSettlement adds the header of a settlement to an answer, in the form of the payment's
// version.
func WriteSettlement(h http.Header, version int, s Settlement) error {
	name := HeaderResponse
	if version == V1 {
		name = HeaderResponseV1
		if id, err := ChainOf(s.Network); err == nil && Slug(id) != "" {
			s.Network = Slug(id)
		}
	}
	text, err := Encode(s)
	if err != nil {
		return err
	}
	h.Set(name, text)
	return nil
}

// DemandOf reads the demand of a 402 answer: the header of version 2, else the body of version 1.
// The result's requirements are in the form of version 2. Those of version 1 on networks that this package does
// not know are left out, so that Accepts may be empty. A header that cannot be read is an error, also where the
// body could be. The error is a *Refusal.
func DemandOf(h http.Header, body []byte) (d PaymentRequired, version int, err error) {
	if text := h.Get(HeaderRequired); text != "" {
		d, err = DecodeRequired(text)
		return d, V2, err
	}
	var old PaymentRequiredV1
	if err := UnmarshalObject(body, &old); err != nil {
		return d, 0, err
	}
	switch {
	case old.X402Version != V1:
		return d, 0, Refuse(ReasonInvalidVersion, "x402Version %d in the body: 1 is allowed there", old.X402Version)
	case len(old.Accepts) == 0 || len(old.Accepts) > maxAccepts:
		return d, 0, Refuse(ReasonInvalidRequirements, "accepts has %d items: 1 to %d are allowed", len(old.Accepts),
			maxAccepts)
	}
	d.X402Version, d.Error = V2, old.Error
	d.Resource = Resource{URL: old.Accepts[0].Resource, Description: old.Accepts[0].Description,
		MimeType: old.Accepts[0].MimeType}
	for i := range old.Accepts {
		if now, err := old.Accepts[i].V2(); err == nil {
			d.Accepts = append(d.Accepts, now)
		}
	}
	return d, V1, nil
}
