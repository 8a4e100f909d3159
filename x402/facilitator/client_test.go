package facilitator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/x402"
	"repute/x402/facilitator"
)

const hash = "0x1111111111111111111111111111111111111111111111111111111111111111"

// demanded is a payment of version 2 and what it is for.
func demanded() (x402.Payment, x402.Requirements) {
	r := x402.Requirements{Scheme: x402.SchemeExact, Network: "eip155:84532", Amount: x402.NewAmount(5),
		Asset: common.HexToAddress("0x01"), PayTo: common.HexToAddress("0x02"), MaxTimeoutSeconds: 60,
		Extra: []byte(`{"name":"USDC","version":"2"}`)}
	return x402.Payment{Version: x402.V2, Accepted: r, Payload: x402.Payload{Signature: []byte{1},
		Authorization: &x402.Authorization{From: common.HexToAddress("0x03")}}}, r
}

// answering serves a facilitator that answers every request with a status and a body; a status of 0 never answers.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status == 0 {
			_, _ = io.Copy(io.Discard, r.Body) // without it the server does not see that the client is gone
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestBadFacilitators: a facilitator that lies, hangs or answers anything else than the protocol
// neither makes a payment valid nor settles one, and another one is asked.
func TestBadFacilitators(t *testing.T) {
	t.Parallel()
	good := answering(t, http.StatusOK, `{"isValid":true,"success":true,"transaction":"`+hash+
		`","network":"eip155:84532"}`)
	settled := `"success":true,"transaction":"` + hash + `",`
	for name, x := range map[string]struct {
		status int
		body   string
	}{
		"hangs":         {0, ""},
		"HTML":          {200, "<html>ok</html>"},
		"nothing":       {200, ""},
		"a list":        {200, "[]"},
		"an error":      {500, `{"isValid":true,"success":true}`},
		"a redirect":    {302, ""},
		"a huge answer": {200, `{"isValid":true,` + settled + `"network":"` + strings.Repeat("a", 300<<10) + `"}`},
		"another payer": {200, `{"isValid":true,"payer":"0x09",` + settled + `"network":"eip155:84532"}`},
		"yes and no": {200, `{"isValid":true,"invalidReason":"x","errorReason":"x",` + settled +
			`"network":"eip155:84532"}`},
		"no without reason": {200, `{"isValid":false,"success":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, r := demanded()
			bad := answering(t, x.status, x.body)
			alone, err := facilitator.NewClient(nil, 300*time.Millisecond, bad)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := alone.Verify(t.Context(), p, r); !errors.Is(err, x402.ErrUnavailable) || v.IsValid {
				t.Errorf("verify: %+v, %v", v, err)
			}
			if s, err := alone.Settle(t.Context(), p, r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success {
				t.Errorf("settle: %+v, %v", s, err)
			}
			two, err := facilitator.NewClient(nil, 300*time.Millisecond, bad, good)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := two.Verify(t.Context(), p, r); err != nil || !v.IsValid {
				t.Errorf("the second one is not asked: %+v, %v", v, err)
			}
			if s, err := two.Settle(t.Context(), p, r); err != nil || s.Transaction != hash {
				t.Errorf("the second one does not settle: %+v, %v", s, err)
			}
		})
	}
}

// TestSettlementsThatCannotBe: a success needs the network, the amount and the hash of a transaction.
func TestSettlementsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no transaction":  `{"success":true,"transaction":"","network":"eip155:84532"}`,
		"no hash":         `{"success":true,"transaction":"0x12","network":"eip155:84532"}`,
		"another network": `{"success":true,"transaction":"` + hash + `","network":"eip155:1"}`,
		"another amount":  `{"success":true,"transaction":"` + hash + `","network":"eip155:84532","amount":"4"}`,
	} {
		p, r := demanded()
		c, err := facilitator.NewClient(nil, time.Second, answering(t, 200, body))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := c.Settle(t.Context(), p, r); !errors.Is(err, x402.ErrUnknownEnd) || s.Success {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// TestRefusalAfterSilence: where one facilitator gave no answer, the refusal of another one does not
// say that the payment was not settled.
func TestRefusalAfterSilence(t *testing.T) {
	t.Parallel()
	p, r := demanded()
	refusing := answering(t, 200,
		`{"success":false,"errorReason":"invalid_transaction_state","network":"eip155:84532"}`)
	c, err := facilitator.NewClient(nil, 200*time.Millisecond, answering(t, 0, ""), refusing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Settle(t.Context(), p, r); !errors.Is(err, x402.ErrUnknownEnd) {
		t.Errorf("first: %v", err)
	}
	if s, err := c.Settle(t.Context(), p, r); err != nil || s.ErrorReason != x402.ReasonTransactionState {
		t.Errorf("then the silent one rests: %+v, %v", s, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Settle(ended, p, r); !errors.Is(err, x402.ErrUnknownEnd) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := c.Settle(t.Context(), p, r); err != nil {
		t.Errorf("a canceled request counts against the facilitator that answers: the silent one is asked first: %v", err)
	}
}

// TestURLs lists URLs that no facilitator has.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{nil, {"ftp://a"}, {"a"}} {
		if _, err := facilitator.NewClient(nil, 0, urls...); err == nil {
			t.Errorf("%q is taken", urls)
		}
	}
}
