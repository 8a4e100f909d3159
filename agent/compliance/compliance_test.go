package compliance_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode"

	"repute/agent/compliance"
	"repute/x402"
)

// FuzzRun: whatever a server answers, all checks end, none passes for an unsigned answer, and details are
// one line that a terminal can show.
func FuzzRun(f *testing.F) {
	f.Add(200,
		`{"status":"healthy","agentId":"1","version":"1","uptime":1,"capabilities":["a"],"acceptingRequests":true}`, "")
	f.Add(402, `{"error":"payment_required","message":"x","x402Version":1,"accepts":[{}]}`, "e30=")
	f.Add(500, "goroutine 1 [running]\x1b[2J", "\x00")
	f.Fuzz(func(t *testing.T, status int, body, header string) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(x402.HeaderRequired, header)
			w.Header().Set("X-Agent-ID", header)
			w.Header().Set("X-Agent-Signature", header)
			w.WriteHeader(200 + (status%400+400)%400)
			_, _ = w.Write([]byte(body))
		}))
		defer s.Close()
		// A rate limit would be waited for.
		if 200+(status%400+400)%400 == http.StatusTooManyRequests {
			t.Skip()
		}
		r, err := compliance.Run(t.Context(), compliance.Options{URL: s.URL, MaxBody: 100, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if r.OK || r.Exit() != 1 || len(r.Checks) < 25 {
			t.Errorf("%+v", r)
		}
		for _, c := range r.Checks {
			if c.ID == "signatures" && c.OK {
				t.Errorf("%+v", c)
			}
			for _, letter := range c.Detail {
				if unicode.IsControl(letter) && letter < 0x80 {
					t.Errorf("%s: %q", c.ID, c.Detail)
				}
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	})
}
