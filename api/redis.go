package api

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// CheckRedis asks Redis, where there is one to be asked, and logs when it does not
// answer: a service should say so when it starts, not when the first request comes.
func (a *API) CheckRedis(ctx context.Context) { a.limiter.Redis(ctx) }

// watchRedis publishes whether Redis answers, where there is one.
func (a *API) watchRedis() error {
	if !a.limiter.Shared() {
		return nil
	}
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "repute_redis_up",
		Help: "1 while Redis answers; while it does not, every process counts its callers alone."},
		func() float64 {
			if a.limiter.Redis(context.Background()) == "ok" {
				return 1
			}
			return 0
		})
	if err := a.registry.Register(up); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
