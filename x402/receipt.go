package x402

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

// formatEIP712 is the form of offers and receipts that this package signs.
const formatEIP712 = "eip712"

// offer is a server's signed promise to serve for a price (offer_receipt.md).
type offer struct {
	Version     uint64 `json:"version"`
	ResourceURL string `json:"resourceUrl"`
	Scheme      string `json:"scheme"`
	Network     string `json:"network"` // CAIP-2
	Asset       string `json:"asset"`
	PayTo       string `json:"payTo"`
	Amount      string `json:"amount"`
	ValidUntil  uint64 `json:"validUntil"` // seconds since 1970
}

// Receipt is a server's signed word that it was paid and served (offer_receipt.md).
type Receipt struct {
	Version     uint64 `json:"version"`
	Network     string `json:"network"` // CAIP-2
	ResourceURL string `json:"resourceUrl"`
	Payer       string `json:"payer"`
	IssuedAt    uint64 `json:"issuedAt"`    // seconds since 1970
	Transaction string `json:"transaction"` // hash; "" where the server does not tell
}

// signedOffer is an Offer with its signature and its place in the demand's accepts.
type signedOffer struct {
	Format      string        `json:"format"`
	AcceptIndex *int          `json:"acceptIndex,omitempty"`
	Payload     offer         `json:"payload"`
	Signature   hexutil.Bytes `json:"signature"`
}

// SignedReceipt is a Receipt with its signature.
type SignedReceipt struct {
	Format    string        `json:"format"`
	Payload   Receipt       `json:"payload"`
	Signature hexutil.Bytes `json:"signature"`
}

// data is what is signed of an offer. Its chain is 1 on every network.
func (o *offer) data() apitypes.TypedData {
	return statement("x402 offer", "Offer", fields("uint256", "version", "string", "resourceUrl", "string", "scheme",
		"string", "network", "string", "asset", "string", "payTo", "string", "amount", "uint256", "validUntil"),
		apitypes.TypedDataMessage{"version": NewAmount(o.Version).String(), "resourceUrl": o.ResourceURL,
			"scheme": o.Scheme, "network": o.Network, "asset": o.Asset, "payTo": o.PayTo, "amount": o.Amount,
			"validUntil": NewAmount(o.ValidUntil).String()})
}

// data is what is signed of a receipt. Its chain is 1 on every network.
func (r *Receipt) data() apitypes.TypedData {
	return statement("x402 receipt", "Receipt",
		fields("uint256", "version", "string", "network", "string", "resourceUrl",
			"string", "payer", "uint256", "issuedAt", "string", "transaction"),
		apitypes.TypedDataMessage{"version": NewAmount(r.Version).String(), "network": r.Network,
			"resourceUrl": r.ResourceURL, "payer": r.Payer, "issuedAt": NewAmount(r.IssuedAt).String(),
			"transaction": r.Transaction})
}

// statement is EIP-712 data in the domain of offers or receipts.
func statement(domain, name string, of []apitypes.Type, message apitypes.TypedDataMessage) apitypes.TypedData {
	return apitypes.TypedData{Types: apitypes.Types{
		"EIP712Domain": fields("string", "name", "string", "version", "uint256", "chainId"), name: of},
		PrimaryType: name, Domain: apitypes.TypedDataDomain{Name: domain, Version: "1", ChainId: chainNumber(1)},
		Message: message}
}

// AddOffers signs the demand's requirements as offers that hold until a time, in seconds since 1970.
// The signer should be the key of the payee.
func (d *Demand) AddOffers(ctx context.Context, s Signer, until uint64) error {
	offers := []signedOffer{}
	for i, r := range d.Accepts {
		o := offer{Version: 1, ResourceURL: d.Resource.URL, Scheme: r.Scheme, Network: r.Network, Asset: r.Asset.Hex(),
			PayTo: r.PayTo.Hex(), Amount: r.Amount.String(), ValidUntil: until}
		signed, err := s.SignTyped(ctx, o.data())
		if err != nil {
			return fmt.Errorf("sign offer: %w", err)
		}
		offers = append(offers, signedOffer{formatEIP712, &i, o, signed})
	}
	return d.Extensions.Add(ExtensionOfferReceipt, object{"offers": offers}, object{"$schema": schemaDraft,
		"type": "object", "properties": object{"offers": object{"type": "array", "items": object{"type": "object",
			"required": []string{"format", "signature"}}}}, "required": []string{"offers"}})
}

// AddReceipt signs a receipt and adds it to a settlement, which MUST be a success.
func (s *Settlement) AddReceipt(ctx context.Context, by Signer, r Receipt) error {
	if !s.Success {
		return fmt.Errorf("receipt: the settlement failed: %s", s.ErrorReason)
	}
	r.Version = 1
	signed, err := by.SignTyped(ctx, r.data())
	if err != nil {
		return fmt.Errorf("sign receipt: %w", err)
	}
	return s.Extensions.Add(ExtensionOfferReceipt, object{"receipt": SignedReceipt{formatEIP712, r, signed}},
		object{"$schema": schemaDraft, "type": "object", "properties": object{"receipt": object{"type": "object",
			"required": []string{"format", "signature"}}}, "required": []string{"receipt"}})
}

// Receipt returns the receipt of a settlement; ok is false where it has none. Its signature is not
// checked: it proves something to others only together with the payee's account.
func (s *Settlement) Receipt() (r SignedReceipt, ok bool, err error) {
	var info struct {
		Receipt SignedReceipt `json:"receipt"`
	}
	ok, err = s.Extensions.info(ExtensionOfferReceipt, &info)
	return info.Receipt, ok && len(info.Receipt.Signature) > 0, err
}
