package x402

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
)

// Addresses are written with the checksum of EIP-55: some implementations take no other form. They
// are read in any case. The methods below shadow the members that are addresses.

// MarshalJSON implements json.Marshaler.
func (r Requirements) MarshalJSON() ([]byte, error) {
	type plain Requirements
	return json.Marshal(struct {
		plain
		Asset string `json:"asset"`
		PayTo string `json:"payTo"`
	}{plain(r), r.Asset.Hex(), r.PayTo.Hex()})
}

// MarshalJSON implements json.Marshaler.
func (r RequirementsV1) MarshalJSON() ([]byte, error) {
	type plain RequirementsV1
	return json.Marshal(struct {
		plain
		Asset string `json:"asset"`
		PayTo string `json:"payTo"`
	}{plain(r), r.Asset.Hex(), r.PayTo.Hex()})
}

// MarshalJSON implements json.Marshaler.
func (e Extra) MarshalJSON() ([]byte, error) {
	type plain Extra
	return json.Marshal(struct {
		plain
		Facilitator string `json:"facilitatorAddress,omitempty"`
	}{plain(e), hexOrNone(e.Facilitator)})
}

// MarshalJSON implements json.Marshaler.
func (a Authorization) MarshalJSON() ([]byte, error) {
	type plain Authorization
	return json.Marshal(struct {
		plain
		From string `json:"from"`
		To   string `json:"to"`
	}{plain(a), a.From.Hex(), a.To.Hex()})
}

// MarshalJSON implements json.Marshaler.
func (p Permit) MarshalJSON() ([]byte, error) {
	type plain Permit
	return json.Marshal(struct {
		plain
		From    string `json:"from"`
		Spender string `json:"spender"`
	}{plain(p), p.From.Hex(), p.Spender.Hex()})
}

// MarshalJSON implements json.Marshaler.
func (p Permitted) MarshalJSON() ([]byte, error) {
	type plain Permitted
	return json.Marshal(struct {
		plain
		Token string `json:"token"`
	}{plain(p), p.Token.Hex()})
}

// MarshalJSON implements json.Marshaler.
func (w Witness) MarshalJSON() ([]byte, error) {
	type plain Witness
	return json.Marshal(struct {
		plain
		To          string `json:"to"`
		Facilitator string `json:"facilitator,omitempty"`
	}{plain(w), w.To.Hex(), hexOrNone(w.Facilitator)})
}

// hexOrNone is an address with its checksum, "" for none.
func hexOrNone(a *common.Address) string {
	if a == nil {
		return ""
	}
	return a.Hex()
}
