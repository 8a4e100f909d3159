package compliance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"repute/internal/httprule"
)

// maxAnswer bounds an answer in bytes, maxCapabilities how many of a runtime are asked.
const (
	// maxAnswer is larger than what runtimes of the specification answer, and small enough to be kept for every
	// request of the suite. Each of the maxCapabilities is asked with up to three inputs before the checks begin.
	maxAnswer       = 16 << 20
	maxCapabilities = 20
)

// answer is one that was read, or the failure to read it.
type answer struct {
	what string // method and path
	// status is 0 where err is set before an answer came.
	status int
	header http.Header
	// body is kept whole, because signatures are over its bytes.
	body []byte
	err  error
}

// is returns an error where the answer is missing or has none of some statuses.
// It takes a nil answer, as the answers of a suite are nil where their request was never made.
func (a *answer) is(statuses ...int) error {
	if a == nil {
		return fmt.Errorf("no answer")
	}
	if a.err != nil {
		return fmt.Errorf("%s: %w", a.what, a.err)
	}
	if slices.Contains(statuses, a.status) {
		return nil
	}
	return fmt.Errorf("%s is answered with %d, wanted is %s: %.100s", a.what, a.status, alternatives(statuses), a.body)
}

// alternatives joins statuses by "or".
func alternatives(list []int) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(list), "[]")), " or ")
}

// object reads the body as a JSON object.
func (a *answer) object() (map[string]any, error) {
	var out map[string]any
	if err := json.Unmarshal(a.body, &out); err != nil || out == nil {
		return nil, fmt.Errorf("%s: the body is no JSON object: %.100s", a.what, a.body)
	}
	return out, nil
}

// problem returns an error where the body is no error of appendix B: members error and message, in
// problem details or plain JSON.
//
// The member status of problem details is compared with the answer's own, because clients of RFC 9457 may read
// either.
func (a *answer) problem() error {
	media, _, err := mime.ParseMediaType(a.header.Get("Content-Type"))
	if err != nil || media != "application/json" && media != "application/problem+json" {
		return fmt.Errorf("%s: Content-Type is %.80q, wanted is application/problem+json or application/json", a.what,
			a.header.Get("Content-Type"))
	}
	body, err := a.object()
	if err != nil {
		return err
	}
	for _, name := range []string{"error", "message"} {
		if text, ok := body[name].(string); !ok || text == "" {
			return fmt.Errorf("%s: member %s of the error is missing or no text: %.100s", a.what, name, a.body)
		}
	}
	if status, given := body["status"].(float64); given && int(status) != a.status {
		return fmt.Errorf("%s: the body says status %v, the answer has %d", a.what, status, a.status)
	}
	return nil
}

// refusal is an answer with one of some statuses and the members of an error.
// It returns the status for the detail of a check that passes.
func (a *answer) refusal(statuses ...int) (string, error) {
	if err := a.is(statuses...); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d", a.status), a.problem()
}

// maxWaits is how often a rate limit is waited for, maxWait the longest pause.
const (
	// Their product bounds the pauses of one request of the suite.
	maxWaits = 5
	maxWait  = 10 * time.Second
)

// ask sends one request and remembers its answer. Rate limits are respected: the request is sent
// again after the pause that the answer names, which is bounded, as a runtime could name a year. The
// answer with 429 is not remembered where a later one replaces it. It is never nil.
//
// Only an answer that was read in full is added to seen, which the checks of headers and signatures go through: a
// broken connection has nothing to judge there, and fails the check that asked.
func (s *suite) ask(ctx context.Context, method, path string, body []byte, h http.Header) *answer {
	a := &answer{what: method + " " + path}
	a.err = s.send(ctx, a, method, path, body, h)
	for range maxWaits {
		if a.err != nil || a.status != http.StatusTooManyRequests {
			break
		}
		wait := httprule.RetryAfter(a.header.Get("Retry-After"), time.Now())
		select {
		case <-ctx.Done():
		case <-time.After(min(maxWait, max(time.Second, wait))):
		}
		a.err = s.send(ctx, a, method, path, body, h)
	}
	if a.err == nil {
		s.seen = append(s.seen, a)
	}
	return a
}

// send makes one request, within Timeout, and reads the whole answer into a. It asks with Expect: 100-continue
// before a large body: a runtime that refuses the body by its length answers and closes the connection, and a
// client that is still writing would see the broken connection and not the answer.
func (s *suite) send(ctx context.Context, a *answer, method, path string, body []byte, h http.Header) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.o.URL+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range h {
		r.Header[name] = values
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	if len(body) > 1<<20 {
		r.Header.Set("Expect", "100-continue")
	}
	res, err := s.o.Client.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer+1)); err != nil {
		return err
	}
	if len(a.body) > maxAnswer {
		return fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return nil
}

// call asks a capability.
func (s *suite) call(ctx context.Context, q request, h http.Header) *answer {
	return s.ask(ctx, http.MethodPost, "/capability/"+q.name, q.input, h)
}

// look makes the requests that several checks read: health, the registration file, and which
// capabilities are paid for and free. It judges nothing: what is missing afterwards, its checks tell
// or skip. An agent that is expected to accept nothing is not asked for its capabilities.
//
// It stops at the first capability of each kind. A capability that answers with another status is passed over,
// because the input that was guessed for it may be wrong.
func (s *suite) look(ctx context.Context) {
	s.health = s.ask(ctx, http.MethodGet, "/health", nil, nil)
	if s.health.err == nil {
		_ = json.Unmarshal(s.health.body, &s.state) // judged by its check
	}
	s.registration = s.ask(ctx, http.MethodGet, "/.well-known/agent-registration.json", nil, nil)
	if s.o.Mode == Shutdown {
		return
	}
	for _, q := range s.candidates() {
		a := s.call(ctx, q, nil)
		switch {
		case a.err != nil:
		case a.status == http.StatusPaymentRequired && s.demand == nil:
			s.demand, s.paid = a, q
		case a.status == http.StatusOK && s.gift == nil:
			s.gift = a
		}
		if s.demand != nil && s.gift != nil || ctx.Err() != nil {
			return
		}
	}
}

// candidates are requests that may be answered: the operator's, then each capability with usual
// inputs.
// The operator's pair comes first, so that the payment is made for it whatever else the runtime offers. The last
// input is the empty object, which suits capabilities without required members.
func (s *suite) candidates() (out []request) {
	if s.o.Capability != "" && len(s.o.Input) > 0 {
		out = append(out, request{s.o.Capability, s.o.Input})
	}
	inputs := []string{`{"text":"hello"}`, `{}`}
	if len(s.o.Input) > 0 {
		inputs = append([]string{string(s.o.Input)}, inputs...)
	}
	names := s.state.Capabilities
	for _, name := range names[:min(len(names), maxCapabilities)] {
		if !plain(name) || s.o.Capability == name && len(s.o.Input) > 0 {
			continue
		}
		for _, input := range inputs {
			out = append(out, request{name, json.RawMessage(input)})
		}
	}
	return out
}

// plain reports whether a name can be part of a path. Names are the runtime's: one with a slash or dots
// could lead the requests, and a payment, to another path.
func plain(name string) bool {
	return name != "" && len(name) <= 100 && strings.Trim(strings.ToLower(name),
		"abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// other returns an input of the same form with another text, where the input has a text.
// ok is false where no member is a text. Which of several texts is changed is not defined.
func other(input json.RawMessage) (json.RawMessage, bool) {
	var members map[string]any
	if err := json.Unmarshal(input, &members); err != nil {
		return nil, false
	}
	for name, value := range members {
		if text, ok := value.(string); ok {
			members[name] = text + "x"
			raw, err := json.Marshal(members)
			return raw, err == nil
		}
	}
	return nil, false
}
