package signed

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
)

// Headers of requests.
const (
	HeaderReceipt         = "X-Payment-Receipt" // base64 of JSON: Promise
	HeaderClient          = "X-Client-Address"
	HeaderClientTimestamp = "X-Client-Timestamp"
	HeaderClientSignature = "X-Client-Signature"
)

// Times by which signatures of clients are accepted.
const (
	maxAge   = 60 * time.Second // how old they may be
	maxAhead = 5 * time.Second  // how far in the future
)

// Promise is a PaymentReceipt with its signature, as X-Payment-Receipt carries it.
type Promise struct {
	PaymentReceipt
	Signature []byte
}

// promise is the JSON of a Promise.
type promise struct {
	From      string      `json:"from"`
	To        string      `json:"to"`
	Amount    string      `json:"amount"`
	Currency  string      `json:"currency"`
	TaskHash  string      `json:"taskHash"`
	Timestamp json.Number `json:"timestamp"`
	Signature string      `json:"signature"`
}

// maxPromise bounds the header's text, in bytes.
const maxPromise = 64 << 10

// DecodePromise reads the text of the header X-Payment-Receipt: base64 of JSON. repute.ErrInvalid
// names the member that is wrong.
func DecodePromise(text string) (p Promise, err error) {
	if len(text) > maxPromise {
		return p, repute.Invalid(HeaderReceipt, "is too long", strconv.Itoa(maxPromise)+" characters at most")
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return p, repute.Invalid(HeaderReceipt, "is no base64", "base64 of the JSON of a receipt")
	}
	var in promise
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&in); err != nil {
		return p, repute.Invalid(HeaderReceipt, "is no JSON of a receipt",
			"base64 of {from, to, amount, currency, taskHash, timestamp, signature}")
	}
	return in.read()
}

// read checks the members of a promise. Whether it is signed is not its business.
func (in *promise) read() (p Promise, err error) {
	for _, a := range []struct {
		name, text string
		into       *common.Address
	}{{"from", in.From, &p.From}, {"to", in.To, &p.To}} {
		if *a.into, err = repute.ParseAddress(HeaderReceipt+"."+a.name, a.text); err != nil {
			return p, err
		}
	}
	if p.Amount, err = parseAmount(HeaderReceipt+".amount", in.Amount); err != nil {
		return p, err
	}
	if p.Currency = in.Currency; p.Currency == "" || len(p.Currency) > 32 {
		return p, repute.Invalid(HeaderReceipt+".currency", "is no currency", "1 to 32 characters, such as ETH")
	}
	if p.TaskHash, err = parseHash(HeaderReceipt+".taskHash", in.TaskHash); err != nil {
		return p, err
	}
	if p.Timestamp, err = parseTime(HeaderReceipt+".timestamp", in.Timestamp.String()); err != nil {
		return p, err
	}
	p.Signature, err = parseSignature(HeaderReceipt+".signature", in.Signature)
	return p, err
}

// parseHash reads a hash. repute.ErrInvalid names the field; so do parseTime and parseSignature.
func parseHash(field, text string) (common.Hash, error) {
	raw, err := hexutil.Decode(text)
	if err != nil || len(raw) != common.HashLength {
		return common.Hash{}, repute.Invalid(field, "is no hash", "0x and 64 hex digits")
	}
	return common.BytesToHash(raw), nil
}

// parseTime reads a time in seconds since 1970.
func parseTime(field, text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, repute.Invalid(field, "is no time", "seconds since 1970")
	}
	return n, nil
}

// parseSignature reads a signature: of a key, or a longer one of a contract wallet.
func parseSignature(field, text string) ([]byte, error) {
	raw, err := hexutil.Decode(text)
	if err != nil || len(raw) == 0 || len(raw) > maxSignature {
		return nil, repute.Invalid(field, "is no signature", "0x and hex digits")
	}
	return raw, nil
}

// Encode returns the text of the header.
func (p *Promise) Encode() (string, error) {
	raw, err := json.Marshal(promise{From: p.From.Hex(), To: p.To.Hex(), Amount: p.Amount.String(),
		Currency: p.Currency,
		TaskHash: p.TaskHash.Hex(), Timestamp: json.Number(number(p.Timestamp)),
		Signature: hexutil.Encode(p.Signature)})
	if err != nil {
		return "", fmt.Errorf("receipt: %w", err)
	}
	return base64.StdEncoding.EncodeToString(raw), nil
}

// parseAmount reads an amount of smallest units: decimal digits below 2^256. repute.ErrInvalid names
// the field.
func parseAmount(field, text string) (*big.Int, error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || len(text) > 78 || strings.Trim(text, "0123456789") != "" || n.BitLen() > 256 {
		return nil, repute.Invalid(field, fmt.Sprintf("%.80q is no amount", text),
			"decimal digits of the smallest unit")
	}
	return n, nil
}

// Fresh refuses a client's time that is too old or in the future. repute.ErrInvalid names the field.
func Fresh(field string, timestamp uint64, now time.Time) error {
	at := time.Unix(int64(min(timestamp, 1<<40)), 0)
	switch age := now.Sub(at); {
	case age > maxAge:
		return repute.Invalid(field, fmt.Sprintf("is %s old", age.Round(time.Second)), maxAge.String()+" at most")
	case age < -maxAhead:
		return repute.Invalid(field, fmt.Sprintf("is %s in the future", -age.Round(time.Second)),
			"seconds since 1970, at most "+maxAhead.String()+" in the future")
	}
	return nil
}

// SignedRequest is a TaskRequest without its task, as the headers X-Client-* carry it.
type SignedRequest struct {
	Client    common.Address
	Timestamp uint64
	Signature []byte
}

// ReadRequest reads who signed a request from its headers; nil where nobody did. repute.ErrInvalid
// names the header that is wrong.
func ReadRequest(h http.Header) (*SignedRequest, error) {
	if h.Get(HeaderClientSignature) == "" && h.Get(HeaderClient) == "" {
		return nil, nil
	}
	var r SignedRequest
	var err error
	if r.Client, err = repute.ParseAddress(HeaderClient, h.Get(HeaderClient)); err != nil {
		return nil, err
	}
	if r.Timestamp, err = parseTime(HeaderClientTimestamp, h.Get(HeaderClientTimestamp)); err != nil {
		return nil, err
	}
	if r.Signature, err = parseSignature(HeaderClientSignature, h.Get(HeaderClientSignature)); err != nil {
		return nil, err
	}
	return &r, nil
}
