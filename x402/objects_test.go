package x402_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/x402"
)

// drawAmount draws any amount below 2^256.
func drawAmount(t *rapid.T, name string) x402.Amount {
	raw := rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, name)
	a, err := x402.AmountOf(new(big.Int).SetBytes(raw))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func drawAddress(t *rapid.T, name string) (a common.Address) {
	copy(a[:], rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, name))
	return a
}

// drawRequirements draws requirements that can be served.
func drawRequirements(t *rapid.T) x402.Requirements {
	r := x402.Requirements{Scheme: x402.SchemeExact,
		Network: x402.Network(rapid.SampledFrom([]uint64{1, 8453, 84532, 31337}).Draw(t, "chain")),
		Amount:  drawAmount(t, "amount"), Asset: drawAddress(t, "asset"), PayTo: drawAddress(t, "payTo"),
		MaxTimeoutSeconds: rapid.Int64Range(1, 1000).Draw(t, "timeout")}
	extra, err := x402.Extra{Name: rapid.String().Draw(t, "name") + "x", Version: "2"}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	r.Extra, r.Asset[19], r.PayTo[19] = extra, 1, 1
	return r
}

func drawPayment(t *rapid.T) x402.Payment {
	p := x402.Payment{Version: rapid.IntRange(1, 2).Draw(t, "version")}
	p.Payload.Signature = rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "signature")
	if rapid.Bool().Draw(t, "permit") {
		p.Payload.Permit2 = &x402.Permit{From: drawAddress(t, "from"), Spender: drawAddress(t, "spender"),
			Permitted: x402.Permitted{Token: drawAddress(t, "token"), Amount: drawAmount(t, "permitted")},
			Nonce:     drawAmount(t, "nonce"), Deadline: drawAmount(t, "deadline"),
			Witness: x402.Witness{To: drawAddress(t, "to"), ValidAfter: drawAmount(t, "after")}}
	} else {
		p.Payload.Authorization = &x402.Authorization{From: drawAddress(t, "from"), To: drawAddress(t, "to"),
			Value: drawAmount(t, "value"), ValidAfter: drawAmount(t, "after"), ValidBefore: drawAmount(t, "before"),
			Nonce: common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "nonce"))}
	}
	p.Accepted = drawRequirements(t)
	if p.Version == x402.V1 {
		p.Accepted = x402.Requirements{Scheme: p.Accepted.Scheme, Network: p.Accepted.Network}
		return p
	}
	p.Resource = &x402.Resource{URL: "https://a.example/x"}
	return p
}

// TestPaymentRoundTrip: a payment of either version is read as it was written, by its own header.
func TestPaymentRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPayment(t)
		text, err := x402.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set(map[int]string{x402.V1: x402.HeaderPaymentV1, x402.V2: x402.HeaderPayment}[p.Version], text)
		back, err := x402.PaymentOf(h)
		if err != nil || !reflect.DeepEqual(back, p) {
			t.Fatalf("%v: %+v is read as %+v", err, p, back)
		}
	})
}

// TestOneDemandForAllClients: one answer is read by both versions, and has the headers and the body
// of the Agent Runtime Specification.
func TestOneDemandForAllClients(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := x402.Demand{Resource: x402.Resource{URL: "https://a.example/x"},
			Accepts: []x402.Requirements{drawRequirements(t)},
			Runtime: &x402.RuntimeDemand{Address: "0x1", Amount: "0.001", Currency: "USDC", Chain: "base",
				TaskHash: "0x2"}}
		w := httptest.NewRecorder()
		if err := d.Write(w); err != nil || w.Code != http.StatusPaymentRequired {
			t.Fatal(err, w.Code)
		}
		now, version, err := x402.DemandOf(w.Header(), w.Body.Bytes())
		if err != nil || version != x402.V2 || !reflect.DeepEqual(now.Accepts, d.Accepts) {
			t.Fatalf("version %d: %v", version, err)
		}
		var body struct{ Error, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error != "payment_required" ||
			body.Message == "" {
			t.Fatalf("body %s: %v", w.Body, err)
		}
		if w.Header().Get("X-Payment-Amount") != "0.001" {
			t.Fatal("no header of the runtime specification")
		}
		old, version, err := x402.DemandOf(http.Header{}, w.Body.Bytes())
		if id, _ := x402.ChainOf(d.Accepts[0].Network); x402.Slug(id) == "" {
			if err == nil {
				t.Fatal("a network without a name is offered to version 1")
			}
		} else if err != nil || version != x402.V1 || !reflect.DeepEqual(old.Accepts, d.Accepts) {
			t.Fatalf("version %d: %v", version, err)
		}
	})
}

// TestAmounts lists texts that are no amounts, and the exact decimal form.
func TestAmounts(t *testing.T) {
	t.Parallel()
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	for _, text := range []string{"", "1e3", "-1", "+1", "1.0", " 1", "01", "0x1", "½",
		new(big.Int).Add(most, big.NewInt(1)).String(), strings.Repeat("9", 100)} {
		if err := new(x402.Amount).UnmarshalText([]byte(text)); !refusedWith(err, x402.ReasonInvalidPayload) {
			t.Errorf("%q: %v", text, err)
		}
	}
	var a x402.Amount
	if err := a.UnmarshalText([]byte(most.String())); err != nil || a.Big().Cmp(most) != 0 {
		t.Errorf("2^256 - 1: %v", err)
	}
	if json.Unmarshal([]byte("1"), &a) == nil || json.Unmarshal([]byte("1.5"), &a) == nil {
		t.Error("a JSON number is taken for an amount")
	}
	for units, want := range map[uint64]string{0: "0", 1: "0.000001", 1500000: "1.5", 20000000: "20"} {
		if got := x402.NewAmount(units).Decimal(6); got != want {
			t.Errorf("%d: %s, want %s", units, got, want)
		}
	}
}

// refusedWith reports whether an error is a refusal for a reason.
func refusedWith(err error, reason x402.Reason) bool {
	var r *x402.Refusal
	return errors.As(err, &r) && r.Reason == reason
}

// TestHeaders lists headers that are refused, each with its reason.
func TestHeaders(t *testing.T) {
	t.Parallel()
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	payload := `"payload":{"signature":"0x01","authorization":{"from":"0x0000000000000000000000000000000000000001",` +
		`"to":"0x0000000000000000000000000000000000000001","value":"%","validAfter":"0","validBefore":"0",` +
		`"nonce":"0x0000000000000000000000000000000000000000000000000000000000000000"}}}`
	v1 := func(value string) string {
		return b64(`{"x402Version":1,"scheme":"exact","network":"base",` + strings.Replace(payload, "%", value, 1))
	}
	for name, x := range map[string]struct {
		text   string
		reason x402.Reason
	}{
		"empty":       {b64(""), x402.ReasonInvalidPayload},
		"no base64":   {"{}", x402.ReasonInvalidPayload},
		"URL base64":  {"-_-_", x402.ReasonInvalidPayload},
		"no object":   {b64("[]"), x402.ReasonInvalidPayload},
		"two objects": {b64("{}{}"), x402.ReasonInvalidPayload},
		"no version":  {b64("{}"), x402.ReasonInvalidVersion},
		"version 3":   {b64(`{"x402Version":3}`), x402.ReasonInvalidVersion},
		"more than 64 KB": {b64(`{"x402Version":2,"a":"` + strings.Repeat("a", 64<<10) + `"}`),
			x402.ReasonInvalidPayload},
		"unknown network": {b64(`{"x402Version":1,"scheme":"exact","network":"moon",` +
			strings.Replace(payload, "%", "1", 1)), x402.ReasonInvalidNetwork},
		"no payload": {b64(`{"x402Version":1,"scheme":"exact","network":"base"}`), x402.ReasonInvalidPayload},
		"exponent":   {v1("1e3"), x402.ReasonInvalidPayload},
		"negative":   {v1("-1"), x402.ReasonInvalidPayload},
		"2^256": {v1("115792089237316195423570985008687907853269984665640564039457584007913129639936"),
			x402.ReasonInvalidPayload},
		"deep": {b64(strings.Repeat(`{"a":`, 7000) + "1" + strings.Repeat("}", 7000)),
			x402.ReasonInvalidVersion},
		"deeper than JSON": {b64(`{"a":` + strings.Repeat("[", 20000)), x402.ReasonInvalidPayload},
	} {
		if _, err := x402.DecodePayment(x.text); !refusedWith(err, x.reason) {
			t.Errorf("%s: %v, want %s", name, err, x.reason)
		}
	}
	if _, err := x402.DecodePayment(v1("1")); err != nil {
		t.Error(err)
	}
	if _, err := x402.PaymentOf(http.Header{}); !errors.Is(err, x402.ErrNoPayment) {
		t.Error(err)
	}
	if _, err := x402.PaymentOf(http.Header{"X-Payment": {v1("1"), v1("1")}}); !refusedWith(err,
		x402.ReasonInvalidPayload) {
		t.Errorf("two headers: %v", err)
	}
}

// TestMatch: the price that a payment echoes is compared, never used.
func TestMatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := x402.Demand{Accepts: []x402.Requirements{drawRequirements(t)}}
		p := x402.Payment{Version: x402.V2, Accepted: d.Accepts[0]}
		if own, err := d.Match(&p); err != nil || !reflect.DeepEqual(own, d.Accepts[0]) {
			t.Fatal(err)
		}
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			p.Accepted.Amount = drawAmount(t, "other amount")
		case 1:
			p.Accepted.PayTo = drawAddress(t, "other payee")
		case 2:
			p.Accepted.Asset = drawAddress(t, "other asset")
		case 3:
			p.Accepted.Scheme = x402.SchemeUpto
		case 4:
			p.Accepted.Network = "eip155:5"
		}
		if _, err := d.Match(&p); err == nil && !reflect.DeepEqual(p.Accepted, d.Accepts[0]) {
			t.Fatal("another price is taken")
		}
	})
}

// TestPaymentID: ids have 16 to 128 letters, digits, - and _, and are added to what was offered.
func TestPaymentID(t *testing.T) {
	t.Parallel()
	var offered x402.Extensions
	if err := offered.OfferPaymentID(true); err != nil {
		t.Fatal(err)
	}
	if _, err := offered.PaymentID(true); !refusedWith(err, x402.ReasonInvalidPayload) {
		t.Errorf("missing: %v", err)
	}
	for id, ok := range map[string]bool{"short": false, strings.Repeat("a", 16): true, strings.Repeat("Z-_9", 32): true,
		strings.Repeat("a", 129): false, strings.Repeat("a", 15) + "ü": false} {
		if err := offered.SetPaymentID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
		if got, err := offered.PaymentID(true); ok && (err != nil || got != id) {
			t.Errorf("%q is read as %q: %v", id, got, err)
		}
	}
}

// TestChecksums: addresses are written with the checksum of EIP-55, which some clients insist on,
// and read in any case.
func TestChecksums(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPayment(t)
		p.Payload.Signature = make([]byte, 65) // one of 20 bytes would look like an address
		if p.Payload.Permit2 != nil && rapid.Bool().Draw(t, "upto") {
			f := drawAddress(t, "facilitator")
			p.Payload.Permit2.Witness.Facilitator = &f
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Split(string(text), `"`) {
			if common.IsHexAddress(word) && len(word) == 42 && common.HexToAddress(word).Hex() != word {
				t.Fatalf("%s in %s", word, text)
			}
		}
		var back x402.Payment
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(p, back) {
			t.Fatalf("%+v is read as %+v: %v", p, back, err)
		}
	})
}
