package chainserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/time/rate"
)

// Answer replaces the true one. Raw, Status and Hang concern the whole HTTP response, also of a
// batch; Result and Error concern one call.
type Answer struct {
	Result any               // marshaled; nil gives null
	Error  *Error            // wins over Result
	Raw    []byte            // the HTTP body, instead of JSON
	Status int               // HTTP status, 200 when zero
	Header map[string]string // of the HTTP response, with Raw or Status
	Delay  time.Duration     // before answering
	Hang   bool              // never answer: until the client gives up
	Honest bool              // answer truthfully after Delay
}

// Rule decides about a call; nil leaves it alone. Rules run in the order in which they were
// injected, and the first answer counts. They may change the chain.
type Rule func(Call) *Answer

// requestRule decides about an HTTP request with one call or more, as Rule does about a call.
type requestRule func([]Call) *Answer

// LogMap changes the logs that eth_getLogs returns. It gets its own copy. Several are applied in the order in which
// they were added.
type LogMap func([]types.Log) []types.Log

// Stats count what a server answered.
type Stats struct {
	Requests int64            `json:"requests"` // HTTP requests that were answered with calls
	Limited  int64            `json:"limited"`  // refused by RateLimit
	Bytes    int64            `json:"bytes"`    // of answers
	Calls    map[string]int64 `json:"calls"`    // by method, each call of a batch
}

// faults are what a server has injected and counted. mu protects all of it; rules run without it, so that a rule may
// inject others or look at counts.
type faults struct {
	mu       sync.Mutex
	dark     bool
	rules    []*Rule
	requests []requestRule
	logMaps  []*logMap
	stats    Stats
}

// logMap is a change of logs that was injected. Its address tells it from others when it is removed.
type logMap struct {
	change LogMap
	ranges bool // of more than one block only
}

// Inject adds a rule and returns a function that removes it.
func (f *faults) Inject(fn Rule) (undo func()) { return add(f, &f.rules, &fn) }

// injectRequest adds a rule about HTTP requests.
func (f *faults) injectRequest(fn requestRule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, fn)
}

// MapLogs changes the answers of eth_getLogs and returns a function that ends it.
func (f *faults) MapLogs(fn LogMap) (undo func()) { return add(f, &f.logMaps, &logMap{change: fn}) }

// MapRanges is MapLogs for questions about more than one block.
func (f *faults) MapRanges(fn LogMap) (undo func()) {
	return add(f, &f.logMaps, &logMap{change: fn, ranges: true})
}

// add appends to a list of faults. Lists are replaced and never changed in place when one is removed, because requests
// read them without the lock.
func add[T any](f *faults, list *[]*T, item *T) (undo func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, item)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		*list = slices.DeleteFunc(slices.Clone(*list), func(x *T) bool { return x == item })
	}
}

// logMapsOf are the maps that apply to a question about one block or more.
func (f *faults) logMapsOf(ranges bool) (out []LogMap) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.logMaps {
		if ranges || !m.ranges {
			out = append(out, m.change)
		}
	}
	return out
}

// GoDark makes the server close every connection without an answer, until it is called with false.
func (f *faults) GoDark(dark bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dark = dark
}

// Dark reports whether the server is dark.
func (f *faults) Dark() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dark
}

// Stats returns what was counted so far.
func (f *faults) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.stats
	out.Calls = maps.Clone(f.stats.Calls)
	return out
}

// Calls returns how often a method was called so far.
func (f *faults) Calls(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.stats.Calls[method])
}

// count changes the counts under the lock.
func (f *faults) count(fn func(*Stats)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(&f.stats)
}

// decide counts a call and asks the rules about it. The call learns how often its method was called before, so that a
// rule can fail the third one alone.
func (f *faults) decide(c *Call) *Answer {
	f.mu.Lock()
	c.N = int(f.stats.Calls[c.Method])
	f.stats.Calls[c.Method]++
	rules := f.rules
	f.mu.Unlock()
	for _, r := range rules {
		if a := (*r)(*c); a != nil {
			return a
		}
	}
	return nil
}

// decideRequest returns a copy of the first answer to a request, nil without one.
func (f *faults) decideRequest(calls []Call) *Answer {
	f.mu.Lock()
	rules := f.requests
	f.mu.Unlock()
	for _, r := range rules {
		if a := r(calls); a != nil {
			out := *a
			return &out
		}
	}
	return nil
}

// LimitRange refuses eth_getLogs over more than max blocks with a provider's own words.
func LimitRange(max uint64, refusal Error) Rule {
	return func(c Call) *Answer {
		if from, to, ok := Range(c); ok && c.Method == "eth_getLogs" && to-from+1 > max {
			return &Answer{Error: &refusal}
		}
		return nil
	}
}

// Range returns the block range of an eth_getLogs call; ok is false for tags and for a question by a block's hash.
func Range(c Call) (from, to uint64, ok bool) {
	var q struct{ FromBlock, ToBlock string }
	if len(c.Params) == 0 || json.Unmarshal(c.Params[0], &q) != nil {
		return 0, 0, false
	}
	from, err := hexutil.DecodeUint64(q.FromBlock)
	to, err2 := hexutil.DecodeUint64(q.ToBlock)
	return from, to, err == nil && err2 == nil
}

// LimitBatch refuses requests of more than max calls: every call of them, or with Raw or Status the whole.
func (f *faults) LimitBatch(max int, refusal Answer) {
	f.injectRequest(func(calls []Call) *Answer {
		if len(calls) <= max {
			return nil
		}
		return &refusal
	})
}

// RateLimit answers so many HTTP requests per second, and the others with status 429 and Retry-After. As many may come
// at once. Batches count once, however large they are.
func (f *faults) RateLimit(perSecond int) {
	limiter := rate.NewLimiter(rate.Limit(perSecond), perSecond)
	f.injectRequest(func([]Call) *Answer {
		if limiter.Allow() {
			return nil
		}
		f.count(func(st *Stats) { st.Limited++ })
		return &Answer{Status: http.StatusTooManyRequests,
			Header: map[string]string{"Content-Type": "application/json", "Retry-After": "1"},
			Raw:    []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"rate limit exceeded"}}`)}
	})
}

// Latency delays every HTTP request.
func (f *faults) Latency(d time.Duration) {
	f.injectRequest(func([]Call) *Answer { return &Answer{Delay: d, Honest: true} })
}
