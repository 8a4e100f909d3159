// Package measure compares the commitments of an agent.json, latency bounds and uptimes, with measurements of the
// service. It is pure.
//
// A constraint is a text for people. The forms that are understood are those of latencyForm and uptimeForm; a text in
// any other form is judged Unknown, and never guessed. A commitment is Broken as soon as that is certain, and Kept only
// when enough was measured: as many requests as the quantile needs, or the whole period of an uptime.
package measure

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Outcome is what measurements say about a commitment.
type Outcome string

// Outcomes.
const (
	Kept    Outcome = "kept"
	Broken  Outcome = "broken"
	Unknown Outcome = "unknown" // not measured, not enough, or not understood: see the reason
)

// Observed is what was measured of a service.
// The zero value was not measured, and every judgment of it is Unknown.
type Observed struct {
	Latencies []time.Duration // of single requests, in any order
	Window    time.Duration   // the time over which the service was watched for Down
	Down      time.Duration   // of Window
}

// Judgment is the outcome of one commitment.
type Judgment struct {
	Outcome Outcome
	Reason  string // with the measured value
}

// Promise is a commitment of an agent.json.
type Promise struct {
	Type       string // latency_bound, uptime_sla; others are not measured
	Constraint string // e.g. "p99 < 500ms"
	Verifiable bool   // the publisher says that others can measure it
}

// Understood reports whether a promise that is meant to be measured can be. Promises of other types always pass.
func (p Promise) Understood() bool {
	return !p.Verifiable || !isMeasured(p.Type) || parseBound(p) != nil
}

// IsMeasured reports whether measurements can keep or break a promise.
func (p Promise) IsMeasured() bool { return p.Verifiable && isMeasured(p.Type) && parseBound(p) != nil }

// maxText bounds constraints, in bytes.
const maxText = 256

// bound is what a constraint promises.
type bound struct {
	latency  time.Duration // of a latency bound
	quantile float64       // 0 to 1; 1 for the maximum, meanOf for the mean
	strictly bool          // below, not at most

	uptime float64       // 0 to 1, of an uptime bound
	period time.Duration // over which uptime counts; 0 for none given
}

// meanOf stands for the mean in place of a quantile. It is outside of 0 to 1, so that it never is one.
const meanOf = -1

// isMeasured reports whether commitments of a type are compared with measurements.
func isMeasured(kind string) bool { return kind == "latency_bound" || kind == "uptime_sla" }

// latencyForm is "p99 < 500ms", "average latency under 2 seconds" or "max: 1s".
var latencyForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:p(\d{1,2}(?:\.\d{1,3})?)|(avg|average|mean)|(median)|(max|maximum))?` +
		`(?: ?(?:latency|response time))? ?(<=|≤|<|under|below|at most|:)? ?` +
		`(\d{1,9}(?:\.\d{1,6})?) ?(µs|us|ms|milliseconds?|s|sec|seconds?)$`)
})

// uptimeForm is "99.9% monthly uptime", "99.95 % availability per year" or ">= 99%".
var uptimeForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:>=|≥|>|at least)? ?(\d{1,3}(?:\.\d{1,9})?) ?% ?` +
		`(daily|weekly|monthly|quarterly|yearly|annual)? ?(?:uptime|availability)? ?` +
		`(?:(?:per|a|each) (day|week|month|quarter|year))?$`)
})

// parseBound reads what a commitment promises; nil for a text that is not understood.
// The text is folded before it is matched: letter case and white space do not matter.
func parseBound(c Promise) *bound {
	text := strings.ToLower(strings.Join(strings.Fields(c.Constraint), " "))
	switch {
	case len(text) > maxText:
		return nil
	case c.Type == "latency_bound":
		return parseLatency(latencyForm().FindStringSubmatch(text))
	case c.Type == "uptime_sla":
		return parseUptime(uptimeForm().FindStringSubmatch(text))
	}
	return nil
}

// parseLatency reads the parts of a latency bound.
func parseLatency(m []string) *bound {
	if m == nil {
		return nil
	}
	b := &bound{quantile: 1, strictly: m[5] == "<" || m[5] == "under" || m[5] == "below"}
	switch {
	case m[1] != "":
		percent, _ := strconv.ParseFloat(m[1], 64)
		b.quantile = percent / 100
	case m[2] != "":
		b.quantile = meanOf
	case m[3] != "":
		b.quantile = 0.5
	}
	unit := time.Second
	switch m[7][0] {
	case 'm':
		unit = time.Millisecond
	case 'u', "µ"[0]:
		unit = time.Microsecond
	}
	value, _ := strconv.ParseFloat(m[6], 64)
	b.latency = time.Duration(math.Round(value * float64(unit)))
	// A quantile of 0 or a bound of no time promises nothing.
	if b.quantile == 0 || b.latency <= 0 {
		return nil
	}
	return b
}

// parseUptime reads the parts of an uptime bound.
// A month has 30 days here and a year 365, as the texts do not say which month they mean.
func parseUptime(m []string) *bound {
	if m == nil {
		return nil
	}
	percent, _ := strconv.ParseFloat(m[1], 64)
	if percent <= 0 || percent > 100 {
		return nil
	}
	const day = 24 * time.Hour
	b := &bound{uptime: percent / 100}
	switch m[2] + m[3] {
	case "":
	case "daily", "day":
		b.period = day
	case "weekly", "week":
		b.period = 7 * day
	case "monthly", "month":
		b.period = 30 * day
	case "quarterly", "quarter":
		b.period = 90 * day
	case "yearly", "annual", "year":
		b.period = 365 * day
	default: // two different periods
		return nil
	}
	return b
}

// Check compares a commitment with measurements. Only commitments that their publisher calls verifiable are judged, and
// only latency_bound and uptime_sla.
func (o Observed) Check(c Promise) Judgment {
	if !c.Verifiable {
		return Judgment{Unknown, "the publisher does not call it verifiable"}
	}
	if !isMeasured(c.Type) {
		return Judgment{Unknown, "commitments of this type are not measured"}
	}
	b := parseBound(c)
	switch {
	case b == nil:
		return Judgment{Unknown, "the constraint is not understood"}
	case c.Type == "latency_bound":
		return o.latency(b)
	}
	return o.uptime(b)
}

// enoughLatencies is the number of requests of which a quantile is known: a hundred for p99, a thousand for p99.9.
// A mean or a maximum takes thirty.
func enoughLatencies(quantile float64) int {
	if quantile <= 0 || quantile >= 1 {
		return 30
	}
	return max(30, int(math.Ceil(1/(1-quantile)-1e-6)))
}

// latency compares with a latency bound. A maximum that one request exceeded is broken however few there are.
func (o Observed) latency(b *bound) Judgment {
	n := len(o.Latencies)
	if n == 0 {
		return Judgment{Unknown, "no request was measured"}
	}
	got := measure(o.Latencies, b.quantile)
	kept := got < b.latency || !b.strictly && got == b.latency
	text := fmt.Sprintf("measured %s of %s in %d requests", got.Round(time.Microsecond), b.latency, n)
	enough := enoughLatencies(b.quantile)
	switch {
	case !kept && (b.quantile == 1 || n >= enough):
		return Judgment{Broken, text}
	case n < enough:
		return Judgment{Unknown, fmt.Sprintf("%s, %d are needed", text, enough)}
	}
	return Judgment{Kept, text}
}

// measure returns a quantile by the nearest rank, or the mean.
// The nearest rank is always a latency that was measured, so that the reason names a real one. The small difference
// keeps 0.07*100, which is a little more than 7 in binary, from becoming the rank 8.
func measure(latencies []time.Duration, quantile float64) time.Duration {
	if quantile == meanOf {
		sum := 0.0
		for _, l := range latencies {
			sum += float64(l)
		}
		return time.Duration(sum / float64(len(latencies)))
	}
	sorted := slices.Sorted(slices.Values(latencies))
	rank := int(math.Ceil(quantile*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// leastWindow is how long a service is watched before an uptime without a period is judged.
// A shorter watch would call an uptime of 99 % broken for a restart of a minute.
const leastWindow = 24 * time.Hour

// uptime compares with an uptime bound. It is broken as soon as more of the period is lost than the bound allows, and
// kept only once the whole period was watched.
func (o Observed) uptime(b *bound) Judgment {
	if o.Window <= 0 || o.Down < 0 || o.Down > o.Window {
		return Judgment{Unknown, "the service was not watched"}
	}
	period := max(b.period, leastWindow)
	whole := max(period, o.Window)
	allowed := time.Duration(math.Round(float64(whole) * (1 - b.uptime)))
	text := fmt.Sprintf("down %s of %s, allowed %s in %s", o.Down, o.Window, allowed, whole)
	switch {
	case o.Down > allowed:
		return Judgment{Broken, text}
	case o.Window < period:
		return Judgment{Unknown, text + "; not watched long enough"}
	}
	return Judgment{Kept, text}
}
