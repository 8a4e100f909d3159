package facilitator_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"repute/x402"
	"repute/x402/facilitator"
)

// fixed is a facilitator that says the same of every payment, and keeps what it was asked.
type fixed struct {
	verification x402.Verification
	settlement   x402.Settlement
	supported    x402.Supported
	err          error
	payment      x402.Payment
	requirements x402.Requirements
}

// Verify implements x402.Facilitator.
func (f *fixed) Verify(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Verification, error) {
	f.payment, f.requirements = p, r
	return f.verification, f.err
}

// Settle implements x402.Facilitator.
func (f *fixed) Settle(_ context.Context, p x402.Payment, r x402.Requirements) (x402.Settlement, error) {
	f.payment, f.requirements = p, r
	return f.settlement, f.err
}

// Supported implements x402.Facilitator.
func (f *fixed) Supported(context.Context) (x402.Supported, error) { return f.supported, f.err }

// body writes the request about a payment in the form of its version.
func body(t *testing.T, p x402.Payment, r x402.Requirements) string {
	t.Helper()
	requirements, err := x402.MarshalRequirements(r, x402.Resource{}, p.Version)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"x402Version": p.Version, "paymentPayload": p,
		"paymentRequirements": requirements})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestHandlerRefusals: a request that cannot be read is answered with 400 and says what is allowed; the facilitator is
// not asked.
func TestHandlerRefusals(t *testing.T) {
	t.Parallel()
	const post, media, bad = http.MethodPost, "application/json", http.StatusBadRequest
	p, r := demanded()
	good := body(t, p, r)
	for name, x := range map[string]struct {
		method, media, body string
		status              int
		says                string
	}{
		"GET":           {http.MethodGet, media, good, http.StatusMethodNotAllowed, ""},
		"text":          {post, "text/plain", good, bad, "application/json"},
		"no media type": {post, "", good, bad, "application/json"},
		"nothing":       {post, media, "", bad, "no JSON object"},
		"a list":        {post, media, "[" + good + "]", bad, "no JSON object"},
		"no payment":    {post, media, `{"x402Version":2}`, bad, "no JSON object"},
		"two versions": {post, media, strings.Replace(good, `"x402Version":2}`, `"x402Version":1}`, 1), bad,
			"of the payment 2"},
		"a huge body":    {post, media, `{"a":"` + strings.Repeat("a", 256<<10) + `"}`, bad, "262144 bytes"},
		"a number price": {post, media, strings.ReplaceAll(good, `"amount":"5"`, `"amount":5`), bad, "amount"},
	} {
		for _, path := range []string{"/verify", "/settle"} {
			f := &fixed{verification: x402.Verification{IsValid: true}, settlement: x402.Settlement{Success: true}}
			req := httptest.NewRequestWithContext(t.Context(), x.method, path, strings.NewReader(x.body))
			if x.media != "" {
				req.Header.Set("Content-Type", x.media)
			}
			w := httptest.NewRecorder()
			facilitator.NewHandler(f).ServeHTTP(w, req)
			if w.Code != x.status || !strings.Contains(w.Body.String(), x.says) || f.payment.Version != 0 {
				t.Errorf("%s %s: %d %s, asked about %+v", path, name, w.Code, w.Body, f.payment)
			}
			var said struct{ IsValid, Success bool }
			if x.status == http.StatusBadRequest && (json.Unmarshal(w.Body.Bytes(), &said) != nil || said.IsValid ||
				said.Success) {
				t.Errorf("%s %s: %s", path, name, w.Body)
			}
		}
	}
}

// TestHandlerUnavailable: where nothing is known the same request may be sent again, and says nothing of the cause,
// which is the operator's to know.
func TestHandlerUnavailable(t *testing.T) {
	t.Parallel()
	p, r := demanded()
	h := facilitator.NewHandler(&fixed{settlement: x402.Settlement{Success: true}, err: errors.New("secret of a node")})
	for path, says := range map[string]string{"/verify": string(x402.ReasonVerify), "/settle": "same payment again",
		"/supported": "{}"} {
		method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[path == "/supported"]
		req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body(t, p, r)))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "2" ||
			!strings.Contains(w.Body.String(), says) || strings.Contains(w.Body.String(), "secret") ||
			strings.Contains(w.Body.String(), `"success":true`) {
			t.Errorf("%s: %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
}

// TestClientAndHandler: what a client of this package asks is what the facilitator behind a handler is asked, in both
// versions, and its answer arrives as it was given.
func TestClientAndHandler(t *testing.T) {
	t.Parallel()
	for _, version := range []int{x402.V1, x402.V2} {
		p, r := demanded()
		payer := x402.PayerOf(&p)
		if p.Version = version; version == x402.V1 {
			p.Accepted = x402.Requirements{Scheme: r.Scheme, Network: r.Network}
		}
		f := &fixed{verification: x402.Verification{IsValid: true, Payer: payer},
			settlement: x402.Settlement{Success: true, Transaction: hash, Network: r.Network, Payer: payer, Amount: &r.Amount},
			supported: x402.Supported{Kinds: []x402.Kind{{X402Version: version, Scheme: r.Scheme, Network: r.Network}},
				Extensions: []string{}, Signers: map[string][]string{"eip155:*": {payer}}}}
		s := httptest.NewServer(facilitator.NewHandler(f))
		t.Cleanup(s.Close)
		c, err := facilitator.NewClient(s.Client(), time.Minute, s.URL+"/")
		if err != nil {
			t.Fatal(err)
		}
		if v, err := c.Verify(t.Context(), p, r); err != nil || v != f.verification {
			t.Errorf("version %d: %+v, %v", version, v, err)
		}
		if f.payment.Version != version || f.payment.Payload.Payer() != p.Payload.Payer() ||
			f.requirements.Amount != r.Amount || f.requirements.Network != r.Network {
			t.Errorf("version %d: asked about %+v for %+v", version, f.payment, f.requirements)
		}
		got, err := c.Settle(t.Context(), p, r)
		if err != nil || !got.Success || got.Transaction != hash || got.Network != r.Network || *got.Amount != r.Amount {
			t.Errorf("version %d: %+v, %v", version, got, err)
		}
		known, err := c.Supported(t.Context())
		if err != nil || len(known.Kinds) != 1 || !slices.Equal(known.Signers["eip155:*"], []string{payer}) {
			t.Errorf("version %d: %+v, %v", version, known, err)
		}
		f.settlement, f.verification = x402.Settlement{ErrorReason: x402.ReasonNonceUsed, Network: r.Network},
			x402.Verification{InvalidReason: x402.ReasonNonceUsed}
		if got, err := c.Settle(t.Context(), p, r); err != nil || got.Success || got.ErrorReason != x402.ReasonNonceUsed {
			t.Errorf("version %d, refused: %+v, %v", version, got, err)
		}
		if v, err := c.Verify(t.Context(), p, r); err != nil || v.IsValid || v.InvalidReason != x402.ReasonNonceUsed {
			t.Errorf("version %d, refused: %+v, %v", version, v, err)
		}
	}
}

// TestClientRefusesUnknownNetworks: requirements that no facilitator can serve are refused without a question.
func TestClientRefusesUnknownNetworks(t *testing.T) {
	t.Parallel()
	p, r := demanded()
	r.Network = "solana"
	c, err := facilitator.NewClient(nil, time.Second, "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	var refused *x402.Refusal
	if _, err := c.Verify(t.Context(), p, r); !errors.As(err, &refused) || errors.Is(err, x402.ErrUnavailable) {
		t.Errorf("verify: %v", err)
	}
	if _, err := c.Settle(t.Context(), p, r); !errors.As(err, &refused) || errors.Is(err, x402.ErrUnknownEnd) {
		t.Errorf("settle: %v", err)
	}
}
