package control_test

import (
	"net/http"
	"strings"
	"testing"

	"repute/orchestrator/control/apikeys"
	"repute/store/keydb"
)

// Operators make, list and revoke keys; the text of a key is in the answer that made it alone.
func TestAPIKeys(t *testing.T) {
	t.Parallel()
	for _, private := range []bool{true, false} {
		h := newRoles(t, private)
		const body = `{"name":"acme","rate":100,"scopes":["export","read"]}`
		for _, c := range [][2]string{{http.MethodGet, "/v1/keys"}, {http.MethodPost, "/v1/keys"},
			{http.MethodDelete, "/v1/keys/acme"}} {
			if r := h.call(c[0], c[1], body); r.status != http.StatusUnauthorized {
				t.Errorf("%s %s without a token: %d", c[0], c[1], r.status)
			}
			if r := h.as("asks", c[0], c[1], body); r.status != http.StatusForbidden ||
				!strings.Contains(string(r.body), "operate") {
				t.Errorf("%s %s with another role: %d %s", c[0], c[1], r.status, r.body)
			}
		}
		var made, revoked apikeys.APIKey
		h.into(h.as("runs", http.MethodPost, "/v1/keys", body), http.StatusCreated, &made)
		if made.Key == nil || !strings.HasPrefix(*made.Key, keydb.Prefix) || made.Rate != 100 {
			t.Fatalf("made %+v", made)
		}
		listed := h.as("runs", http.MethodGet, "/v1/keys", "")
		var list apikeys.APIKeyList
		h.into(listed, http.StatusOK, &list)
		if len(list.Keys) != 1 || list.Keys[0].Name != "acme" || list.Keys[0].Revoked != nil ||
			strings.Contains(string(listed.body), *made.Key) {
			t.Errorf("listed %s", listed.body)
		}
		h.into(h.as("runs", http.MethodDelete, "/v1/keys/acme", ""), http.StatusOK, &revoked)
		if revoked.Revoked == nil {
			t.Errorf("revoked %+v", revoked)
		}
		for body, want := range map[string]int{body: http.StatusConflict, `{"name":"b"}`: http.StatusBadRequest,
			`{"name":"b","rate":1,"scopes":["all"]}`: http.StatusBadRequest} {
			if r := h.as("runs", http.MethodPost, "/v1/keys", body); r.status != want {
				t.Errorf("%s: %d %s, want %d", body, r.status, r.body, want)
			}
		}
		if r := h.as("runs", http.MethodDelete, "/v1/keys/nobody", ""); r.status != http.StatusNotFound {
			t.Errorf("an unknown key: %d", r.status)
		}
	}
}
