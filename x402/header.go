package x402

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Headers of the HTTP transports (transports-v1/http.md, transports-v2/http.md). All hold base64
// of JSON.
const (
	HeaderRequired   = "PAYMENT-REQUIRED"   // the demand of version 2
	HeaderPayment    = "PAYMENT-SIGNATURE"  // the payment of version 2
	HeaderResponse   = "PAYMENT-RESPONSE"   // the settlement of version 2
	HeaderPaymentV1  = "X-PAYMENT"          // the payment of version 1
	HeaderResponseV1 = "X-PAYMENT-RESPONSE" // the settlement of version 1
)

// Names that MCP and A2A carry payments by (transports-v2/mcp.md, transports-v2/a2a.md).
const (
	MetaPayment     = "x402/payment"          // in params._meta of an MCP request
	MetaResponse    = "x402/payment-response" // in _meta of an MCP result
	A2AStatus       = "x402.payment.status"
	A2ARequired     = "x402.payment.required"
	A2APayload      = "x402.payment.payload"
	A2AReceipts     = "x402.payment.receipts"
	A2AError        = "x402.payment.error"
	A2AExtensionURI = "https://github.com/google-a2a/a2a-x402/v0.1"
)

// MaxHeader bounds a header's text in bytes.
const MaxHeader = 64 << 10

// ErrNoPayment is returned for a request without a payment.
var ErrNoPayment = fmt.Errorf("the request has no payment (header %s or %s)", HeaderPayment, HeaderPaymentV1)

// PaymentOf reads the payment of a request: of version 2 where both headers are there. The error
// is ErrNoPayment, or a *Refusal for a header that cannot be read.
func PaymentOf(h http.Header) (p Payment, err error) {
	for _, name := range []string{HeaderPayment, HeaderPaymentV1} {
		switch values := h.Values(name); len(values) {
		case 0:
			continue
		case 1:
			return DecodePayment(values[0])
		default:
			return p, Refuse(ReasonInvalidPayload, "%d headers %s: one is allowed", len(values), name)
		}
	}
	return p, ErrNoPayment
}

// DecodePayment reads the text of a payment header. The error is a *Refusal.
func DecodePayment(text string) (p Payment, err error) { return p, decode(text, &p) }

// DecodeRequired reads the text of the header PAYMENT-REQUIRED. The error is a *Refusal.
func DecodeRequired(text string) (d PaymentRequired, err error) {
	if err := decode(text, &d); err != nil {
		return d, err
	}
	return d, d.check()
}

// DecodeSettlement reads the text of a settlement header. The error is a *Refusal.
func DecodeSettlement(text string) (s Settlement, err error) { return s, decode(text, &s) }

// SettlementOf reads the settlement of an answer; ok is false where it has none that can be read.
func SettlementOf(h http.Header) (s Settlement, ok bool) {
	for _, name := range []string{HeaderResponse, HeaderResponseV1} {
		if text := h.Get(name); text != "" {
			s, err := DecodeSettlement(text)
			return s, err == nil
		}
	}
	return s, false
}

// Encode writes a value as the text of a header.
func Encode(v any) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("payment header: %w", err)
	}
	text := base64.StdEncoding.EncodeToString(raw)
	if len(text) > MaxHeader {
		return "", fmt.Errorf("payment header: has %d bytes, at most %d are allowed", len(text), MaxHeader)
	}
	return text, nil
}

// decode reads base64 of one JSON object.
func decode(text string, into any) error {
	if len(text) == 0 || len(text) > MaxHeader {
		return Refuse(ReasonInvalidPayload, "the header has %d bytes: 1 to %d are allowed", len(text), MaxHeader)
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return Refuse(ReasonInvalidPayload, "the header is not base64 in the standard encoding")
	}
	return UnmarshalObject(raw, into)
}

// UnmarshalObject reads one JSON object. The error is a *Refusal.
func UnmarshalObject(raw []byte, into any) error {
	if trimmed := bytes.TrimLeft(raw, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return Refuse(ReasonInvalidPayload, "no JSON object")
	}
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	var known *Refusal
	if errors.As(err, &known) {
		return known
	}
	return Refuse(ReasonInvalidPayload, "%v", err)
}
