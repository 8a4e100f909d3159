package envelope_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"repute"
	"repute/agent"
	"repute/agent/envelope"
	"repute/agent/signed"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
)

// signing returns a router without capabilities that signs with a new key.
func signing(t testing.TB) *agent.Router {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r, err := agent.NewRouter(nil, agent.Options{Version: "1.2.3", Signer: keys.Local{Key: key},
		ID: repute.AgentID{ChainID: 8453, Registry: common.HexToAddress("0x8004"), TokenID: *uint256.NewInt(7)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRefusedIsSigned: the answer to a request that could not be read is signed over its body, and tells what was wrong
// with the request and nothing else.
func TestRefusedIsSigned(t *testing.T) {
	t.Parallel()
	r := signing(t)
	for name, c := range map[string]struct {
		err               error
		message, hint, no string
	}{
		"input": {fmt.Errorf("read: %w", repute.Invalid("text", "is missing", "a text")), "text: is missing", "a text",
			"read"},
		"payment": {&x402.Refusal{Reason: x402.ReasonInvalidPayload, Message: "no payment of x402"}, "payment: ", "",
			"malformed"},
		"other": {errors.New("secret of the database"), "the request is malformed", "", "secret"},
	} {
		a, err := envelope.Refused(t.Context(), r, c.err)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			Error, Message, Detail, Hint string
			Status                       int
		}
		if err := json.Unmarshal(a.Body, &body); err != nil {
			t.Fatalf("%s: %s", a.Body, err)
		}
		if a.Status != http.StatusBadRequest || body.Status != a.Status || body.Error != "invalid" ||
			!strings.HasPrefix(body.Message, c.message) || body.Message != body.Detail || body.Hint != c.hint ||
			strings.Contains(string(a.Body), c.no) {
			t.Errorf("%s: %s", name, a.Body)
		}
		verifies(t, a, r.Signer())
	}
}

// verifies checks that a client can verify an answer by the headers that its signature becomes, and no other body by
// them.
func verifies(t *testing.T, a *envelope.Answer, signer common.Address) {
	t.Helper()
	read, err := signed.ReadResponse(a.Signature.Headers())
	if err != nil {
		t.Fatal(err)
	}
	if by, err := read.Verify(a.Body); err != nil || by != signer {
		t.Errorf("signed by %s: %v", by, err)
	}
	if by, err := read.Verify([]byte(`{"another":"body"}`)); err == nil && by == signer {
		t.Error("another body has the same signature")
	}
	if read.AgentID.Dec() != "7" || read.Domain.ChainID != 8453 || a.Signature.Version != "1.2.3" {
		t.Errorf("%+v", a.Signature)
	}
}

// TestDoSignsProblems: a request for a capability that is not there gets a signed answer with the status of HTTP.
func TestDoSignsProblems(t *testing.T) {
	t.Parallel()
	r := signing(t)
	a, err := envelope.Do(t.Context(), r, agent.Request{ID: "r-1", Capability: "sum", Input: json.RawMessage(`{}`)})
	if err != nil || a.Status != http.StatusNotFound || !strings.Contains(string(a.Body), `"error":"not_found"`) ||
		!strings.Contains(string(a.Body), "r-1") {
		t.Fatalf("%+v, %v", a, err)
	}
	verifies(t, a, r.Signer())
}

// TestSignatureHeaders: every member of a signature is a header that signed.ReadResponse reads back.
func TestSignatureHeaders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := envelope.Signature{AgentID: fmt.Sprint(rapid.Uint64().Draw(rt, "agent")),
			Registry: "eip155:1:" + common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(rt, "registry")).Hex(),
			Version:  "1.0.0", TaskHash: common.Hash{1}.Hex(), ResultHash: common.Hash{2}.Hex(),
			Timestamp: rapid.Uint64Range(0, 1<<40).Draw(rt, "time"), Metadata: "{}",
			Signature: rapid.SliceOfN(rapid.Byte(), 65, 65).Draw(rt, "signature")}
		r, err := signed.ReadResponse(s.Headers())
		if err != nil {
			rt.Fatal(err)
		}
		if r.AgentID.Dec() != s.AgentID || r.TaskHash.Hex() != s.TaskHash || r.ResultHash.Hex() != s.ResultHash ||
			r.Timestamp != s.Timestamp || r.Metadata != s.Metadata || string(r.Signature) != string(s.Signature) ||
			!strings.HasSuffix(s.Registry, r.Domain.Registry.Hex()) {
			rt.Fatalf("%+v became %+v", s, r)
		}
	})
}

// TestHeaders: texts of an object become headers, by names in any letter case. Everything else is left out.
func TestHeaders(t *testing.T) {
	t.Parallel()
	h := envelope.Headers(map[string]any{"x-client-id": "7", "X-CLIENT-Signature": "0x1", "number": 5, "null": nil,
		"list": []any{"x"}})
	if names := slices.Sorted(maps.Keys(h)); len(names) != 2 || h.Get("X-Client-Id") != "7" ||
		h.Get("X-Client-Signature") != "0x1" {
		t.Errorf("%v", h)
	}
	for _, v := range []any{nil, "text", 5, []any{}, map[string]string{"x-client-id": "7"}} {
		if h := envelope.Headers(v); h == nil || len(h) != 0 {
			t.Errorf("%v: %v", v, h)
		}
	}
}

// TestReadPayment: no payment is no error, and what is none is refused by x402's own reason.
func TestReadPayment(t *testing.T) {
	t.Parallel()
	if p, err := envelope.ReadPayment(nil); p != nil || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	for name, v := range map[string]any{"text": "x", "number": 5, "list": []any{}, "no JSON": make(chan int),
		"version": map[string]any{"x402Version": 7}, "payload": map[string]any{"x402Version": 2, "payload": "x"}} {
		p, err := envelope.ReadPayment(v)
		var refused *x402.Refusal
		if p != nil || !errors.As(err, &refused) || refused.Reason == "" {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestPricing: a free capability has no price, and not one of nothing.
func TestPricing(t *testing.T) {
	t.Parallel()
	if got := envelope.Pricing(&agent.Service{}); got != nil {
		t.Errorf("%v", got)
	}
	got := envelope.Pricing(&agent.Service{Price: &agent.Price{Amount: "0.10", Currency: "USDC", Decimals: 6}})
	if len(got) != 2 || got["amount"] != "0.10" || got["currency"] != "USDC" {
		t.Errorf("%v", got)
	}
}
