package limit

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// pace adapts the rate of requests to the refusals of the endpoint. It is guarded by the lock of its
// Limiter.
type pace struct {
	bucket  *rate.Limiter // rate.Inf: no limit
	ceiling float64       // requests per second at which the endpoint refused
	slowed  time.Time     // when the rate was last halved
	grown   time.Time     // when the rate was last raised
	demand  demand
}

// Bounds of the rate, in requests per second.
const (
	minRate   = 0.2
	maxRate   = 500 // above it no limit is needed
	firstRate = 10  // least taken for the limit at the first refusal
)

// carefulFor is how long after a refusal the rate grows slowly near the refused one.
const carefulFor = 20 * time.Second

// rate returns the limit in requests per second, 0 for none.
func (p *pace) rate() float64 {
	if p.bucket.Limit() == rate.Inf {
		return 0
	}
	return float64(p.bucket.Limit())
}

// delay takes a token for a request, or returns when the next one is available.
func (p *pace) delay(now time.Time) time.Duration {
	p.grow(now)
	token := p.bucket.ReserveN(now, 1)
	wait := token.DelayFrom(now)
	if wait > 0 {
		token.CancelAt(now)
	}
	return wait
}

// grow raises the rate for the time since the last request. It recovers quickly to nine tenths of
// the refused rate, slowly near it, and quickly again after a time without refusals: the refusal may
// have been a temporary problem and not a limit.
func (p *pace) grow(now time.Time) {
	current := p.rate()
	if current == 0 {
		return
	}
	elapsed := now.Sub(p.grown).Seconds()
	p.grown = now
	raised := current * math.Pow(1.2, elapsed)
	if raised >= 0.9*p.ceiling && now.Sub(p.slowed) < carefulFor {
		raised = max(current, 0.9*p.ceiling) * math.Pow(1.01, elapsed)
	}
	if raised > maxRate {
		p.bucket.SetLimitAt(now, rate.Inf)
		return
	}
	p.bucket.SetLimitAt(now, rate.Limit(raised))
	p.bucket.SetBurstAt(now, burst(raised))
}

// burst returns the requests that may be sent at once at a rate: those of half a second.
func burst(perSecond float64) int { return max(1, int(perSecond/2)) }

// slow halves the rate: the current limit or, at the first refusal, the measured rate of requests.
// The measured rate may be close to zero, which is no endpoint's limit; therefore a minimum applies.
// The bucket is empty afterwards.
func (p *pace) slow(now time.Time) {
	if now.Sub(p.slowed) < halveAgain {
		return // sent before the endpoint refused
	}
	p.slowed, p.grown = now, now
	refused := max(p.demand.perSecond(now), firstRate)
	if current := p.rate(); current > 0 {
		refused = min(refused, current)
	}
	p.ceiling = max(refused, minRate)
	lowered := max(refused/2, minRate)
	p.bucket = rate.NewLimiter(rate.Limit(lowered), burst(lowered))
	p.bucket.AllowN(now, burst(lowered))
}

// demand estimates the rate of requests: a count in which older requests weigh less.
type demand struct {
	last   time.Time
	weight float64
}

// demandSpan is the age in seconds at which a request counts for about a third.
const demandSpan = 1

// add counts a request.
func (d *demand) add(now time.Time) { d.weight, d.last = d.perSecond(now)*demandSpan+1, now }

// perSecond returns the current rate of requests.
func (d *demand) perSecond(now time.Time) float64 {
	return d.weight / demandSpan * math.Exp(-now.Sub(d.last).Seconds()/demandSpan)
}
