package x402_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"pgregory.net/rapid"

	"repute/x402"
)

// account signs with a key in memory, in the form of go-ethereum, where v is 0 or 1.
type account struct{ key *ecdsa.PrivateKey }

// Address implements x402.Signer.
func (a account) Address() common.Address { return crypto.PubkeyToAddress(a.key.PublicKey) }

// SignTyped implements x402.Signer.
func (a account) SignTyped(_ context.Context, data apitypes.TypedData) ([]byte, error) {
	sum, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, err
	}
	return crypto.Sign(sum, a.key)
}

// newAccount returns an account with a key of its own.
func newAccount(t *testing.T) account {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return account{key}
}

// TestAmountsAreExact: an amount is the same as text, as JSON, as an integer and in whole tokens, whatever its size.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawAmount(t, "a"), drawAmount(t, "b")
		raw, err := json.Marshal(a)
		var back x402.Amount
		if err != nil || json.Unmarshal(raw, &back) != nil || back != a || string(raw) != `"`+a.String()+`"` {
			t.Fatalf("%s is written as %s and read as %s: %v", a, raw, back, err)
		}
		if a.Cmp(b) != a.Big().Cmp(b.Big()) || (a.Cmp(b) == 0) != (a == b) {
			t.Fatalf("%s and %s: %d", a, b, a.Cmp(b))
		}
		if same, err := x402.AmountOf(a.Big()); err != nil || same != a {
			t.Fatalf("%s: %s, %v", a, same, err)
		}
		decimals := rapid.Uint8Range(0, 90).Draw(t, "decimals")
		text := a.Decimal(decimals)
		whole, ok := new(big.Rat).SetString(text)
		one := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
		if !ok || whole.Cmp(new(big.Rat).SetFrac(a.Big(), one)) != 0 ||
			strings.Contains(text, ".") && strings.HasSuffix(text, "0") || strings.HasSuffix(text, ".") {
			t.Fatalf("%s of %d decimals is %s", a, decimals, text)
		}
	})
	most := new(big.Int).Lsh(big.NewInt(1), 256)
	for _, n := range []*big.Int{nil, big.NewInt(-1), most} {
		if a, err := x402.AmountOf(n); !refusedWith(err, x402.ReasonInvalidPayload) || a != (x402.Amount{}) {
			t.Errorf("%v is taken as %s: %v", n, a, err)
		}
	}
	large, err := x402.AmountOf(new(big.Int).Lsh(big.NewInt(1), 64))
	if err != nil || large.Uint64() != 1<<64-1 || x402.NewAmount(7).Uint64() != 7 {
		t.Errorf("2^64 as a uint64 is %d: %v", large.Uint64(), err)
	}
}

// TestRefusalsAreShort: what a stranger sent is quoted in part, so that a log or an answer does not grow with it.
func TestRefusalsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("7", 60_000)
	payment := `{"x402Version":2,"accepted":{"network":"` + long + `","scheme":"` + long + `"},"payload":{}}`
	var p x402.Payment
	for name, err := range map[string]error{
		"amount":  new(x402.Amount).UnmarshalText([]byte(long)),
		"payload": json.Unmarshal([]byte(payment), &p),
		"scheme":  (&x402.Requirements{Network: "base", Scheme: long}).Check(),
		"network": (&x402.Requirements{Network: long}).Check(),
	} {
		if err == nil || len(err.Error()) > 400 {
			t.Errorf("%s: the refusal has %d bytes", name, len(err.Error()))
		}
	}
}

// TestPay: a payment is signed by its payer for what is demanded, in a form that tokens take, and holds from some
// minutes ago, as clocks differ, until the demand's timeout. No two payments have one nonce.
func TestPay(t *testing.T) {
	t.Parallel()
	signer, now := newAccount(t), time.Unix(1_800_000_000, 0)
	exact, permit2, upto := asked(), asked(), asked()
	permit2.Extra = json.RawMessage(`{"assetTransferMethod":"permit2"}`)
	upto.Scheme, upto.Extra = x402.SchemeUpto,
		json.RawMessage(`{"facilitatorAddress":"0x00000000000000000000000000000000000000f1"}`)
	seen := map[string]bool{}
	for name, r := range map[string]x402.Requirements{"exact": exact, "permit2": permit2, "upto": upto} {
		for range 2 {
			p, err := x402.Pay(t.Context(), signer, &x402.PaymentRequired{}, x402.V2, r, now)
			if err != nil {
				t.Fatal(name, err)
			}
			transfer, err := (&x402.Verifier{Accounts: func(uint64) []common.Address {
				return []common.Address{common.HexToAddress("0xf1")}
			}}).Plan(&p, &r)
			if err != nil {
				t.Fatal(name, err)
			}
			if transfer.From != signer.Address() || transfer.To != r.PayTo || transfer.Amount != r.Amount ||
				transfer.Since != x402.NewAmount(1_800_000_000-600) || transfer.Until != x402.NewAmount(1_800_000_060) {
				t.Errorf("%s: %+v", name, transfer)
			}
			if seen[transfer.ID()] {
				t.Errorf("%s: two payments have the ID %s", name, transfer.ID())
			}
			seen[transfer.ID()] = true
			data := func() apitypes.TypedData {
				if p.Payload.Permit2 != nil {
					return x402.PermitData(*p.Payload.Permit2, 8453)
				}
				return x402.AuthorizationData(*p.Payload.Authorization, 8453, r.Asset, "USD Coin", "2")
			}()
			sum, _, err := apitypes.TypedDataAndHash(data)
			if err != nil || len(p.Payload.Signature) != 65 || p.Payload.Signature[64] < 27 {
				t.Fatalf("%s: signature %x: %v", name, p.Payload.Signature, err)
			}
			plain := bytes.Clone(p.Payload.Signature)
			plain[64] -= 27
			if public, err := crypto.SigToPub(sum, plain); err != nil ||
				crypto.PubkeyToAddress(*public) != signer.Address() {
				t.Errorf("%s: the signature is not the payer's: %v", name, err)
			}
		}
	}
	upto.Extra = nil
	if _, err := x402.Pay(t.Context(), signer, &x402.PaymentRequired{}, x402.V2, upto,
		now); !errors.Is(err, x402.ErrCannotPay) || !strings.Contains(err.Error(), "facilitatorAddress") {
		t.Errorf("upto without a facilitator: %v", err)
	}
	exact.Scheme = "deferred"
	if _, err := x402.Pay(t.Context(), signer, &x402.PaymentRequired{}, x402.V2, exact,
		now); !errors.Is(err, x402.ErrCannotPay) || !refusedWith(err, x402.ReasonUnsupportedScheme) {
		t.Errorf("an unknown scheme: %v", err)
	}
}

// TestReceipts: a receipt is read as it was added, is signed by its server for what it says, and is not to be had of a
// settlement that failed.
func TestReceipts(t *testing.T) {
	t.Parallel()
	signer := newAccount(t)
	failed := x402.Settlement{ErrorReason: x402.ReasonNonceUsed}
	if err := failed.AddReceipt(t.Context(), signer, x402.Receipt{}); err == nil ||
		!strings.Contains(err.Error(), string(x402.ReasonNonceUsed)) || failed.Extensions != nil {
		t.Errorf("a receipt of a failure: %v", err)
	}
	s := x402.Settlement{Success: true}
	if _, ok, err := s.Receipt(); ok || err != nil {
		t.Errorf("without one: %t, %v", ok, err)
	}
	want := x402.Receipt{Network: "eip155:8453", ResourceURL: "https://a.example/x", Payer: "0x01", IssuedAt: 5}
	if err := s.AddReceipt(t.Context(), signer, want); err != nil {
		t.Fatal(err)
	}
	text, err := x402.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := x402.DecodeSettlement(text)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = 1
	got, ok, err := back.Receipt()
	if err != nil || !ok || got.Payload != want || got.Format != "eip712" || len(got.Signature) != 65 {
		t.Errorf("%+v is read as %+v, %t: %v", want, got, ok, err)
	}
	back.Extensions[x402.ExtensionOfferReceipt] = json.RawMessage(`{"info":{"receipt":7}}`)
	if _, _, err := back.Receipt(); !refusedWith(err, x402.ReasonInvalidPayload) {
		t.Errorf("a malformed one: %v", err)
	}
}

// TestOffers: each way to pay is offered by itself, with its place and the price that it demands.
func TestOffers(t *testing.T) {
	t.Parallel()
	dear := asked()
	dear.Amount = x402.NewAmount(20_000)
	d := x402.Demand{Resource: x402.Resource{URL: "https://a.example/x"}, Accepts: []x402.Requirements{asked(), dear}}
	if err := d.AddOffers(t.Context(), newAccount(t), 1_800_000_000); err != nil {
		t.Fatal(err)
	}
	var out struct {
		Info struct {
			Offers []struct {
				AcceptIndex *int
				Payload     struct {
					Amount, PayTo, Network, ResourceURL string
					ValidUntil                          uint64
				}
				Signature string
			}
		}
	}
	if err := json.Unmarshal(d.Extensions[x402.ExtensionOfferReceipt], &out); err != nil || len(out.Info.Offers) != 2 {
		t.Fatalf("%s: %v", d.Extensions[x402.ExtensionOfferReceipt], err)
	}
	for i, o := range out.Info.Offers {
		own := d.Accepts[i]
		if o.AcceptIndex == nil || *o.AcceptIndex != i || o.Payload.Amount != own.Amount.String() ||
			o.Payload.PayTo != own.PayTo.Hex() || o.Payload.ValidUntil != 1_800_000_000 || len(o.Signature) != 2+2*65 ||
			o.Payload.ResourceURL != d.Resource.URL || o.Payload.Network != own.Network {
			t.Errorf("offer %d: %+v", i, o)
		}
	}
	if out.Info.Offers[0].Signature == out.Info.Offers[1].Signature {
		t.Error("two prices have one signature")
	}
}

// TestDiscovery: what catalogs read of a resource names how it is asked, and every member that its schema requires is
// there.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		d    x402.Discovery
		has  []string
		lack []string
	}{
		"GET":  {x402.Discovery{Method: "GET"}, []string{"queryParams", "method"}, []string{"body", "bodyType"}},
		"POST": {x402.Discovery{Method: "POST"}, []string{"body", "bodyType"}, []string{"queryParams"}},
		"MCP": {x402.Discovery{Method: "POST", Tool: "search", Description: "searches"},
			[]string{"toolName", "inputSchema", "description"}, []string{"method", "body"}},
	} {
		x.d.OutputExample = json.RawMessage(`{"found":1}`)
		var e x402.Extensions
		if err := e.AddDiscovery(x.d); err != nil {
			t.Fatal(name, err)
		}
		var out struct {
			Info struct {
				Input  map[string]any
				Output struct{ Example json.RawMessage }
			}
			Schema struct {
				Properties struct {
					Input struct{ Required []string }
				}
			}
		}
		if err := json.Unmarshal(e[x402.ExtensionBazaar], &out); err != nil {
			t.Fatal(name, err)
		}
		required := out.Schema.Properties.Input.Required
		if string(out.Info.Output.Example) != `{"found":1}` || len(required) == 0 {
			t.Errorf("%s: %s", name, e[x402.ExtensionBazaar])
		}
		for _, member := range append(x.has, required...) {
			if _, ok := out.Info.Input[member]; !ok {
				t.Errorf("%s: %s is missing in %v", name, member, out.Info.Input)
			}
		}
		for _, member := range x.lack {
			if _, ok := out.Info.Input[member]; ok {
				t.Errorf("%s: %s is there in %v", name, member, out.Info.Input)
			}
		}
	}
}
