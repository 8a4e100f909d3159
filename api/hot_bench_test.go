package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"repute/api"
	"repute/internal/pgtest"
)

// BenchmarkHotReputation asks for one reputation from many callers at once, through all middleware and without a
// network.
func BenchmarkHotReputation(b *testing.B) {
	db := open(b, pgtest.New(b))
	newLedger(b, db, 8453).add(mint(0, addr(1), "https://a.example")...)
	h := serve(b, api.Options{DB: db}, unlimited()).Config.Handler
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/agents/8453:0/reputation", nil))
			if w.Code != http.StatusOK {
				b.Errorf("status %d: %s", w.Code, w.Body)
				return
			}
		}
	})
}
