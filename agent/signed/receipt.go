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
	MaxAge   = 60 * time.Second // how old they may be
	MaxAhead = 5 * time.Second  // how far in the future
)

// Promise is a PaymentReceipt with its signature, as X-Payment-Receipt carries it.
type Promise struct {
	PaymentReceipt
	Signature []byte
}

// promise is the JSON of it.
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

func (in *promise) read() (p Promise, err error) {
	for _, a := range []struct {
		name, text string
		into       *common.Address
	}{{"from", in.From, &p.From}, {"to", in.To, &p.To}} {
		if *a.into, err = repute.ParseAddress(HeaderReceipt+"."+a.name, a.text); err != nil {
			return p, err
		}
	}
	if p.Amount, err = ParseAmount(HeaderReceipt+".amount", in.Amount); err != nil {
		return p, err
	}
	if p.Currency = in.Currency; p.Currency == "" || len(p.Currency) > 32 {
		return p, repute.Invalid(HeaderReceipt+".currency", "is no currency", "1 to 32 characters, such as ETH")
	}
	sum, err := hexutil.Decode(in.TaskHash)
	if err != nil || len(sum) != common.HashLength {
		return p, repute.Invalid(HeaderReceipt+".taskHash", "is no hash", "0x and 64 hex digits")
	}
	p.TaskHash = common.BytesToHash(sum)
	if p.Timestamp, err = strconv.ParseUint(in.Timestamp.String(), 10, 64); err != nil {
		return p, repute.Invalid(HeaderReceipt+".timestamp", "is no time", "seconds since 1970")
	}
	p.Signature, err = hexutil.Decode(in.Signature)
	if err != nil || len(p.Signature) == 0 || len(p.Signature) > maxSignature {
		return p, repute.Invalid(HeaderReceipt+".signature", "is no signature", "0x and hex digits")
	}
	return p, nil
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

// ParseAmount reads an amount of smallest units: decimal digits below 2^256. repute.ErrInvalid names
// the field.
func ParseAmount(field, text string) (*big.Int, error) {
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
	case age > MaxAge:
		return repute.Invalid(field, fmt.Sprintf("is %s old", age.Round(time.Second)), MaxAge.String()+" at most")
	case age < -MaxAhead:
		return repute.Invalid(field, fmt.Sprintf("is %s in the future", -age.Round(time.Second)),
			"seconds since 1970, at most "+MaxAhead.String()+" in the future")
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
	if r.Timestamp, err = strconv.ParseUint(h.Get(HeaderClientTimestamp), 10, 64); err != nil {
		return nil, repute.Invalid(HeaderClientTimestamp, "is no time", "seconds since 1970")
	}
	r.Signature, err = hexutil.Decode(h.Get(HeaderClientSignature))
	if err != nil || len(r.Signature) == 0 || len(r.Signature) > maxSignature {
		return nil, repute.Invalid(HeaderClientSignature, "is no signature", "0x and hex digits")
	}
	return &r, nil
}
