package x402_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/x402"
)

// asked returns requirements that Check accepts.
func asked() x402.Requirements {
	return x402.Requirements{Scheme: x402.SchemeExact, Network: "eip155:8453", Amount: x402.NewAmount(10_000),
		Asset: common.HexToAddress("0xa1"), PayTo: common.HexToAddress("0xb2"), MaxTimeoutSeconds: 60,
		Extra: json.RawMessage(`{"name":"USD Coin","version":"2"}`)}
}

// TestRequirementsThatCannotBeServed: each refusal has the reason of the specification, and its text names the member
// that is wrong and what is allowed.
func TestRequirementsThatCannotBeServed(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*x402.Requirements)
		reason x402.Reason
		says   string
	}{
		"network":  {func(r *x402.Requirements) { r.Network = "solana" }, x402.ReasonInvalidNetwork, "eip155:"},
		"scheme":   {func(r *x402.Requirements) { r.Scheme = "deferred" }, x402.ReasonUnsupportedScheme, "exact and upto"},
		"asset":    {func(r *x402.Requirements) { r.Asset = common.Address{} }, x402.ReasonInvalidRequirements, "asset"},
		"payee":    {func(r *x402.Requirements) { r.PayTo = common.Address{} }, x402.ReasonInvalidRequirements, "payTo"},
		"timeout":  {func(r *x402.Requirements) { r.MaxTimeoutSeconds = 0 }, x402.ReasonInvalidRequirements, "604800"},
		"negative": {func(r *x402.Requirements) { r.MaxTimeoutSeconds = -1 }, x402.ReasonInvalidRequirements, "-1"},
		"a week and a second": {func(r *x402.Requirements) { r.MaxTimeoutSeconds = 604_801 },
			x402.ReasonInvalidRequirements, "1 to 604800"},
		"no extra": {func(r *x402.Requirements) { r.Extra = nil }, x402.ReasonInvalidRequirements, "EIP-712"},
		"no version": {func(r *x402.Requirements) { r.Extra = json.RawMessage(`{"name":"USD Coin"}`) },
			x402.ReasonInvalidRequirements, "name and version"},
		"method": {func(r *x402.Requirements) { r.Extra = json.RawMessage(`{"assetTransferMethod":"wire"}`) },
			x402.ReasonInvalidRequirements, "eip3009 and permit2"},
		"extra": {func(r *x402.Requirements) { r.Extra = json.RawMessage(`[1]`) }, x402.ReasonInvalidRequirements,
			"extra: "},
		"facilitator": {func(r *x402.Requirements) { r.Extra = json.RawMessage(`{"facilitatorAddress":"0x1"}`) },
			x402.ReasonInvalidRequirements, "extra: "},
	} {
		r := asked()
		x.change(&r)
		if err := r.Check(); !refusedWith(err, x.reason) || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %s with %q", name, err, x.reason, x.says)
		}
	}
	permit2, upto, week := asked(), asked(), asked()
	permit2.Extra = json.RawMessage(`{"assetTransferMethod":"permit2"}`)
	upto.Scheme, upto.Extra = x402.SchemeUpto, nil
	week.MaxTimeoutSeconds = 604_800
	for _, r := range []x402.Requirements{asked(), permit2, upto, week} {
		if err := r.Check(); err != nil {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// TestRequirementsOfBothVersions: requirements are the same after the form of either version. Version 1 calls a network
// by its name where it has one, and has the resource as a part of them.
func TestRequirementsOfBothVersions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, of := drawRequirements(t), x402.Resource{URL: "https://a.example/" + rapid.String().Draw(t, "path")}
		for _, version := range []int{x402.V1, x402.V2} {
			raw, err := x402.MarshalRequirements(r, of, version)
			if err != nil {
				t.Fatal(err)
			}
			back, err := x402.UnmarshalRequirements(raw, version)
			if err != nil || !reflect.DeepEqual(back, r) {
				t.Fatalf("version %d: %+v is read as %+v: %v", version, r, back, err)
			}
			var old struct{ Network, Resource string }
			if err := json.Unmarshal(raw, &old); err != nil {
				t.Fatal(err)
			}
			id, _ := x402.ChainOf(r.Network)
			if version == x402.V1 && x402.Slug(id) != "" && (old.Network != x402.Slug(id) || old.Resource != of.URL) {
				t.Fatalf("%s", raw)
			}
		}
	})
	for version, raw := range map[int]string{x402.V1: `{"network":"base","maxAmountRequired":"-1"}`,
		x402.V2: `{"network":"base","amount":1}`} {
		if _, err := x402.UnmarshalRequirements([]byte(raw), version); !refusedWith(err,
			x402.ReasonInvalidRequirements) {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := x402.UnmarshalRequirements([]byte(`{"network":"moon"}`), x402.V1); !refusedWith(err,
		x402.ReasonInvalidNetwork) {
		t.Errorf("an unknown network of version 1: %v", err)
	}
}

// TestNetworks: CAIP-2 has one text for each chain; other texts that a number parser takes are refused.
func TestNetworks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Uint64Range(1, 1<<63-1).Draw(t, "chain")
		if got, err := x402.ChainOf(x402.Network(id)); err != nil || got != id {
			t.Fatalf("%d is read as %d: %v", id, got, err)
		}
		if name := x402.Slug(id); name != "" {
			if got, err := x402.ChainOf(name); err != nil || got != id {
				t.Fatalf("%s is read as %d: %v", name, got, err)
			}
		}
	})
	for name, want := range map[string]uint64{"base": 8453, "base-sepolia": 84532, "ethereum": 1, "eip155:1": 1} {
		if got, err := x402.ChainOf(name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "Base", "base ", "8453", "eip155", "eip155:", "eip155:0", "eip155:01", "eip155:+1",
		"eip155:-1", "eip155: 1", "eip155:0x1", "eip155:1_000", "EIP155:1", "eip155:9223372036854775808", "solana:mainnet",
		"eip155:" + strings.Repeat("1", 5000)} {
		if _, err := x402.ChainOf(name); !refusedWith(err, x402.ReasonInvalidNetwork) {
			t.Errorf("%.40q: %v", name, err)
		} else if len(err.Error()) > 200 {
			t.Errorf("the refusal of a long name has %d bytes", len(err.Error()))
		}
	}
}

// TestDemandBodies: what an answer of another server may hold, and what it is refused for.
func TestDemandBodies(t *testing.T) {
	t.Parallel()
	item := `{"scheme":"exact","network":"%s","maxAmountRequired":"1","resource":"https://a.example/","description":"d"}`
	items := func(n int, network string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(item, network)
		}
		return `{"x402Version":1,"error":"e","accepts":[` + strings.Join(list, ",") + `]}`
	}
	for name, x := range map[string]struct {
		header, body string
		reason       x402.Reason
	}{
		"no body":            {"", "", x402.ReasonInvalidPayload},
		"HTML":               {"", "<html>pay</html>", x402.ReasonInvalidPayload},
		"a list":             {"", "[" + items(1, "base") + "]", x402.ReasonInvalidPayload},
		"version 2":          {"", `{"x402Version":2,"accepts":[{}]}`, x402.ReasonInvalidVersion},
		"no version":         {"", `{"accepts":[{}]}`, x402.ReasonInvalidVersion},
		"nothing to accept":  {"", items(0, ""), x402.ReasonInvalidRequirements},
		"more than 64 ways":  {"", items(65, "base"), x402.ReasonInvalidRequirements},
		"an unusable header": {"%%%", items(1, "base"), x402.ReasonInvalidPayload},
	} {
		h := http.Header{}
		if x.header != "" {
			h.Set(x402.HeaderRequired, x.header)
		}
		if d, _, err := x402.DemandOf(h, []byte(x.body)); !refusedWith(err, x.reason) {
			t.Errorf("%s: %+v, %v, want %s", name, d, err, x.reason)
		}
	}
	d, version, err := x402.DemandOf(http.Header{}, []byte(items(64, "base")))
	if err != nil || version != x402.V1 || d.X402Version != x402.V2 || len(d.Accepts) != 64 || d.Error != "e" ||
		d.Accepts[0].Network != "eip155:8453" || d.Resource.URL != "https://a.example/" || d.Resource.Description != "d" {
		t.Errorf("64 ways: %+v, version %d, %v", d, version, err)
	}
	if d, _, err := x402.DemandOf(http.Header{}, []byte(items(2, "solana"))); err != nil || len(d.Accepts) != 0 {
		t.Errorf("ways that cannot be paid here are left out: %+v, %v", d, err)
	}
}

// TestDemandHeaders: the answer MUST NOT be kept by caches, has the status that is asked for, and offers clients of
// version 1 only what they know.
func TestDemandHeaders(t *testing.T) {
	t.Parallel()
	upto, unnamed := asked(), asked()
	upto.Scheme, unnamed.Network = x402.SchemeUpto, "eip155:31337"
	d := x402.Demand{Accepts: []x402.Requirements{upto, unnamed, asked()}, Error: "insufficient_funds",
		OutputSchema: json.RawMessage(`{"input":{}}`)}
	w := httptest.NewRecorder()
	if err := d.WriteStatus(w, http.StatusPreconditionFailed); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusPreconditionFailed || w.Header().Get("Cache-Control") != "no-store" ||
		w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Payment-Address") != "" {
		t.Errorf("status %d, headers %v", w.Code, w.Header())
	}
	var body struct {
		Error, Message, Reason string
		X402Version            int
		Accepts                []struct {
			Scheme, Network string
			OutputSchema    json.RawMessage
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Accepts) != 1 ||
		body.Accepts[0].Network != "base" || body.Accepts[0].Scheme != x402.SchemeExact ||
		string(body.Accepts[0].OutputSchema) != `{"input":{}}` || body.Reason != "insufficient_funds" ||
		body.Error != "payment_required" || body.Message != "payment required" || body.X402Version != x402.V1 {
		t.Errorf("body %s: %v", w.Body, err)
	}
	now, _, err := x402.DemandOf(w.Header(), nil)
	if err != nil || len(now.Accepts) != 3 || now.Error != "insufficient_funds" {
		t.Errorf("%+v: %v", now, err)
	}
	if got := (&x402.Demand{}).Required(); got.Error != "payment required" {
		t.Errorf("without a reason: %q", got.Error)
	}
	large := x402.Demand{Accepts: []x402.Requirements{asked()}, Error: strings.Repeat("x", x402.MaxHeader)}
	if err := large.Write(httptest.NewRecorder()); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("a header above the bound: %v", err)
	}
}

// TestMatchOfVersion1: a payment of version 1 names no price. With several ways to pay, what was signed decides; with
// one it is that one, and verification refuses another amount.
func TestMatchOfVersion1(t *testing.T) {
	t.Parallel()
	cheap, dear := asked(), asked()
	dear.Amount = x402.NewAmount(20_000)
	signed := func(to common.Address, amount x402.Amount) *x402.Payment {
		return &x402.Payment{Version: x402.V1, Accepted: x402.Requirements{Scheme: x402.SchemeExact,
			Network: "eip155:8453"}, Payload: x402.Payload{Authorization: &x402.Authorization{To: to, Value: amount}}}
	}
	both := x402.Demand{Accepts: []x402.Requirements{cheap, dear}}
	if own, err := both.Match(signed(dear.PayTo, dear.Amount)); err != nil || own.Amount != dear.Amount {
		t.Errorf("the second way: %+v, %v", own, err)
	}
	permit := signed(cheap.PayTo, cheap.Amount)
	permit.Payload = x402.Payload{Permit2: &x402.Permit{}}
	for name, p := range map[string]*x402.Payment{"another amount": signed(cheap.PayTo, x402.NewAmount(1)),
		"another payee": signed(common.HexToAddress("0xc3"), cheap.Amount), "a permit": permit} {
		if own, err := both.Match(p); !refusedWith(err, x402.ReasonInvalidRequirements) {
			t.Errorf("%s: %+v, %v", name, own, err)
		}
	}
	one := x402.Demand{Accepts: []x402.Requirements{cheap}}
	if own, err := one.Match(signed(cheap.PayTo, x402.NewAmount(1))); err != nil || own.Amount != cheap.Amount {
		t.Errorf("the only way: %+v, %v", own, err)
	}
	lost := signed(cheap.PayTo, cheap.Amount)
	lost.Accepted.Network = "moon"
	if _, err := one.Match(lost); !refusedWith(err, x402.ReasonInvalidNetwork) {
		t.Errorf("an unknown network: %v", err)
	}
	alias := x402.Payment{Version: x402.V2, Accepted: cheap}
	alias.Accepted.Network, alias.Accepted.MaxTimeoutSeconds = "base", 1
	if own, err := one.Match(&alias); err != nil || own.Network != cheap.Network || own.MaxTimeoutSeconds != 60 {
		t.Errorf("the name of version 1, and another timeout: %+v, %v", own, err)
	}
}

// TestSettlementHeaders: a settlement is read from the header of either version, in which it names the network as that
// version does.
func TestSettlementHeaders(t *testing.T) {
	t.Parallel()
	for version, want := range map[int][2]string{x402.V1: {x402.HeaderResponseV1, "base"},
		x402.V2: {x402.HeaderResponse, "eip155:8453"}} {
		h := http.Header{}
		if err := x402.WriteSettlement(h, version, x402.Settlement{Success: true, Network: "eip155:8453"}); err != nil {
			t.Fatal(err)
		}
		s, ok := x402.SettlementOf(h)
		if !ok || !s.Success || s.Network != want[1] || h.Get(want[0]) == "" || len(h) != 1 {
			t.Errorf("version %d: %v is read as %+v", version, h, s)
		}
	}
	for _, h := range []http.Header{{}, {"Payment-Response": {"e30"}}, {"Payment-Response": {"W10="}}} {
		if s, ok := x402.SettlementOf(h); ok {
			t.Errorf("%v is read as %+v", h, s)
		}
	}
}
