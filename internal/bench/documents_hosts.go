package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"repute/indexer/documents"
	"repute/internal/bench/harness"
)

// farmAddress is where all hosts are; they differ by port.
const farmAddress = "127.0.0.1"

// farm serves documents from many hosts with the latencies of real ones, all of them
// known in advance. Of the dead hosts every other one accepts connections and never
// answers; the rest refuse them.
type farm struct {
	// Set by startFarm and not changed afterwards.
	live, each int // hosts that answer, and documents of each host
	delays     [][]time.Duration
	hosts      []string // host:port, dead ones at the end
	servers    []*http.Server
	held       []net.Listener // of hosts that accept and never answer
	serving    sync.WaitGroup
	begun      atomic.Int64 // when the first request came, in ns since 1970; 0 before
	now, most  atomic.Int64 // requests that are being answered: now, and the most there were
}

// Latencies of hosts: the time from request to answer.
type Latencies struct {
	Median float64 `json:"median_ms"`
	P90    float64 `json:"p90_ms"`
	P99    float64 `json:"p99_ms"`
	Most   float64 `json:"longest_ms"`
	Slow   float64 `json:"slowest_host_mean_ms"`
}

// startFarm opens all hosts. Requests are counted from then on. A port that refuses connections is one that was opened
// and closed again.
func startFarm(ctx context.Context, live, dead, each int) (*farm, error) {
	f := &farm{live: live, each: each, delays: delays(live, each)}
	for i := range live + dead {
		var lc net.ListenConfig
		l, err := lc.Listen(ctx, "tcp", farmAddress+":0")
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open host %d: %w", i, err), f.stop())
		}
		f.hosts = append(f.hosts, l.Addr().String())
		switch {
		case i < live:
			f.serve(l, i)
		case (i-live)%2 == 0:
			f.held = append(f.held, l)
			f.serving.Go(func() { harness.Mute(l) })
		default:
			_ = l.Close() // a dead host: connections are refused
		}
	}
	return f, nil
}

// delays draws a typical latency for each host, and one around it for each document.
// A quarter of a second is what a public https server takes that is asked from another
// continent, its handshake included.
func delays(hosts, each int) [][]time.Duration {
	const typical, spread, within = 250 * time.Millisecond, 0.35, 0.25
	random := rand.New(rand.NewPCG(harness.Seed, harness.Seed))
	out := make([][]time.Duration, hosts)
	for h := range out {
		host := float64(typical) * math.Exp(spread*random.NormFloat64())
		for range each {
			out[h] = append(out[h], time.Duration(host*math.Exp(within*random.NormFloat64())))
		}
	}
	return out
}

// serve lets a host that answers begin.
func (f *farm) serve(l net.Listener, host int) {
	s := &http.Server{ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f.answer(w, r, host) })}
	f.servers = append(f.servers, s)
	f.serving.Go(func() { _ = s.Serve(l) }) // until stop closes it
}

// answer sends a document after its latency.
func (f *farm) answer(w http.ResponseWriter, r *http.Request, host int) {
	n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || n < 0 || n >= f.each {
		http.NotFound(w, r)
		return
	}
	f.begun.CompareAndSwap(0, time.Now().UnixNano())
	now := f.now.Add(1)
	defer f.now.Add(-1)
	// Another request may raise the number meanwhile: then it is compared again.
	for most := f.most.Load(); now > most && !f.most.CompareAndSwap(most, now); {
		most = f.most.Load()
	}
	select {
	case <-time.After(f.delays[host][n]):
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(registration(host*f.each + n)) // the client may have gone
}

// stop closes all hosts and waits for their goroutines. It may be called for a farm that was opened in part.
func (f *farm) stop() error {
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.Close())
	}
	for _, l := range f.held {
		errs = append(errs, l.Close())
	}
	f.serving.Wait()
	return errors.Join(errs...)
}

// uris are those of the documents, round-robin by host.
func (f *farm) uris(dead bool) (out []string) {
	hosts := f.hosts
	if !dead {
		hosts = hosts[:f.live]
	}
	for n := range f.each {
		for _, h := range hosts {
			out = append(out, fmt.Sprintf("http://%s/%d", h, n))
		}
	}
	return out
}

// first is when the first document was asked for.
func (f *farm) first() (time.Time, error) {
	if f.begun.Load() == 0 {
		return time.Time{}, errors.New("no host was asked for anything")
	}
	return time.Unix(0, f.begun.Load()), nil
}

// ideal is the least time in which the documents of the hosts that answer can be read
// within the product's limits.
func (f *farm) ideal() time.Duration {
	return ideal(f.delays, documents.DefaultHosts, documents.HostParallel)
}

// ideal is the least time for delays by host, when so many hosts are asked at once, each by so many requests.
func ideal(delays [][]time.Duration, atOnce, perHost int) time.Duration {
	var all, slowest time.Duration
	for _, host := range delays {
		sum := sum(host)
		all, slowest = all+sum, max(slowest, sum)
	}
	return max(all/time.Duration(min(atOnce, len(delays))*perHost), slowest/time.Duration(perHost))
}

// sum is the time that one host takes for all of its documents, one after the other.
func sum(list []time.Duration) (total time.Duration) {
	for _, d := range list {
		total += d
	}
	return total
}

// latencies summarizes the drawn delays, not what the product saw.
func (f *farm) latencies() (l Latencies) {
	var each []float64
	for _, host := range f.delays {
		for _, d := range host {
			each = append(each, harness.Millis(d))
		}
		l.Slow = max(l.Slow, harness.Millis(sum(host))/float64(len(host)))
	}
	all := delaysOf(each)
	l.Median, l.P90, l.P99, l.Most = all.Median, all.P90, all.P99, all.Longest
	return l
}
