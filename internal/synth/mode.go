package synth

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"repute"
)

// Mode is how a server misbehaves. The zero value is an honest, unlimited node
// without latency.
type Mode struct {
	// RangeLimit is the most blocks between fromBlock and toBlock that
	// eth_getLogs answers, 0 for any.
	RangeLimit uint64
	// PerSecond is how many HTTP requests are answered per second, 0 for any;
	// the others get status 429 with Retry-After.
	PerSecond int
	// Latency is added to every HTTP request.
	Latency time.Duration
	// Lossy leaves the logs of History.Lost out of eth_getLogs over more than one
	// block. Questions about single blocks and receipts are answered honestly.
	Lossy bool
}

// ParseMode reads what String writes: "clean", or a comma-separated list of
// range=BLOCKS, rate=REQUESTS, latency=DURATION and lossy.
func ParseMode(s string) (m Mode, err error) {
	for _, part := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "clean":
		case "lossy":
			m.Lossy = true
		case "range":
			m.RangeLimit, err = strconv.ParseUint(value, 10, 64)
		case "rate":
			m.PerSecond, err = strconv.Atoi(value)
		case "latency":
			m.Latency, err = time.ParseDuration(value)
		default:
			err = fmt.Errorf("%q is unknown", name)
		}
		if err != nil || m.PerSecond < 0 || m.Latency < 0 {
			return Mode{}, repute.Invalid("mode", fmt.Sprintf("%q is no mode", part),
				"clean, or range=10000,rate=50,latency=20ms,lossy")
		}
	}
	return m, nil
}

// String gives the mode's text form.
func (m Mode) String() string {
	var parts []string
	if m.RangeLimit > 0 {
		parts = append(parts, fmt.Sprintf("range=%d", m.RangeLimit))
	}
	if m.PerSecond > 0 {
		parts = append(parts, fmt.Sprintf("rate=%d", m.PerSecond))
	}
	if m.Latency > 0 {
		parts = append(parts, "latency="+m.Latency.String())
	}
	if m.Lossy {
		parts = append(parts, "lossy")
	}
	if len(parts) == 0 {
		return "clean"
	}
	return strings.Join(parts, ",")
}
