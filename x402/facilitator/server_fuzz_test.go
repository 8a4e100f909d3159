package facilitator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"repute/x402"
	"repute/x402/facilitator"
)

// FuzzFacilitator sends bodies to a facilitator of no chains: none is settled or breaks it.
func FuzzFacilitator(f *testing.F) {
	f.Add([]byte(`{"x402Version":2,"paymentPayload":{"x402Version":2},"paymentRequirements":{}}`))
	h := facilitator.NewHandler(&x402.Local{Verifier: &x402.Verifier{}})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/verify", "/settle"} {
			r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var said struct{ IsValid, Success bool }
			if err := json.Unmarshal(w.Body.Bytes(), &said); err != nil || said.IsValid || said.Success ||
				w.Code != http.StatusOK && w.Code != http.StatusBadRequest {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}
