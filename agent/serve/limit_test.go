package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/agent"
	"repute/agent/serve"
	"repute/agent/signed"
	"repute/internal/pgtest"
	"repute/orchestrator/wallet/keys"
)

// countingSigner counts its signatures.
type countingSigner struct {
	keys.Local
	n *atomic.Int32
}

// SignTyped implements signed.Signer.
func (s countingSigner) SignTyped(ctx context.Context, d apitypes.TypedData) ([]byte, error) {
	s.n.Add(1)
	return s.Local.SignTyped(ctx, d)
}

// TestFlood: who asks too often makes the agent sign nothing; what is answered is signed.
func TestFlood(t *testing.T) {
	t.Parallel()
	var signatures atomic.Int32
	router, err := agent.NewRouter(database(t, pgtest.New(t)), agent.Options{ID: repute.AgentID{ChainID: 31337},
		Signer:   countingSigner{signer(t), &signatures},
		Services: []*agent.Service{service(t, "echo", &echo{}, nil, nil)}})
	ok(t, err)
	h, err := serve.New(serve.Options{Router: router, Profile: serve.Profile{Name: "echo"}, Rate: 0.001, Burst: 2})
	ok(t, err)
	answered, limited := int32(0), 0
	for range 20 {
		r := httptest.NewRequest(http.MethodPost, "/capability/echo", strings.NewReader(hello))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		_, unsigned := signed.ReadResponse(w.Header())
		switch w.Code {
		case http.StatusOK:
			answered++
		case http.StatusTooManyRequests:
			limited++
		}
		if (unsigned != nil) != (w.Code == http.StatusTooManyRequests) {
			t.Errorf("%d: %v", w.Code, unsigned)
		}
	}
	if limited == 0 || answered == 0 || signatures.Load() != answered {
		t.Errorf("%d answered, %d limited, %d signatures", answered, limited, signatures.Load())
	}
}
