package compliance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// health is the body of GET /health (section 4.1).
type health struct {
	Status            string   `json:"status"`
	AgentID           string   `json:"agentId"`
	Version           string   `json:"version"`
	Uptime            *float64 `json:"uptime"`
	Capabilities      []string `json:"capabilities"`
	AcceptingRequests *bool    `json:"acceptingRequests"`
}

// notAccepting says why a check that needs an accepting agent is skipped.
const notAccepting = skip("the agent is expected to accept no requests")

// checkHTTPS: production is reached by https. On the loopback there is nobody between the two, as in tests.
func (s *suite) checkHTTPS(context.Context) (string, error) {
	ip := net.ParseIP(s.host)
	switch {
	case s.secure:
		return "https", nil
	case s.host == "localhost" || ip != nil && ip.IsLoopback():
		return "http on the loopback, which is no production", nil
	}
	return "", fmt.Errorf("%s is reached by http: production needs https", s.host)
}

// checkHealth: health has its members, with their types, and the id that the header names. Numbers and truths are
// pointers in health, so that 0 and false are told from what is missing.
func (s *suite) checkHealth(context.Context) (string, error) {
	if err := s.health.is(http.StatusOK); err != nil {
		return "", err
	}
	var body health
	if err := json.Unmarshal(s.health.body, &body); err != nil {
		return "", fmt.Errorf("GET /health: a member has another type: %w", err)
	}
	id := s.health.header.Get("X-Agent-ID")
	switch {
	case body.Status == "" || body.Version == "" || body.Uptime == nil || body.Capabilities == nil ||
		body.AcceptingRequests == nil:
		return "", fmt.Errorf("GET /health: status, version, uptime, capabilities or acceptingRequests is missing: %.200s",
			s.health.body)
	case body.AgentID == "" || id != "" && id != body.AgentID:
		return "", fmt.Errorf("GET /health: agentId is %.80q, X-Agent-ID is %.80q", body.AgentID, id)
	}
	return fmt.Sprintf("agent %.80s, %d capabilities", body.AgentID, len(body.Capabilities)), nil
}

// checkReady: a load balancer sends requests to the agent only while it accepts them.
// The body is free: load balancers look at the status alone.
func (s *suite) checkReady(ctx context.Context) (string, error) {
	a := s.ask(ctx, http.MethodGet, "/health/ready", nil, nil)
	want := http.StatusOK
	if s.o.Mode == Shutdown {
		want = http.StatusServiceUnavailable
	}
	return strconv.Itoa(a.status), a.is(want)
}

// checkMode compares how the agent says that it works, and works, with what is expected.
//
// In shutdown a request is sent as well, because a runtime that says so and still works would go on charging.
func (s *suite) checkMode(ctx context.Context) (string, error) {
	if s.health.err != nil || s.state.AcceptingRequests == nil {
		return "", skip("GET /health does not tell it")
	}
	want := map[Mode]string{Normal: "healthy", Degraded: "degraded", Shutdown: "shutdown"}[s.o.Mode]
	if accepts := s.o.Mode != Shutdown; *s.state.AcceptingRequests != accepts {
		return "", fmt.Errorf("acceptingRequests is %v in mode %s", *s.state.AcceptingRequests, s.o.Mode)
	}
	if s.o.Mode != Shutdown {
		if s.state.Status != want {
			return "", fmt.Errorf("status is %.40q, expected is %s", s.state.Status, want)
		}
		return want, nil
	}
	if len(s.state.Capabilities) == 0 || !plain(s.state.Capabilities[0]) {
		return "", skip("no capability is named")
	}
	a := s.call(ctx, request{s.state.Capabilities[0], []byte(`{"text":"hello"}`)}, nil)
	return a.refusal(http.StatusServiceUnavailable)
}

// checkRegistrationFile reads the registration file by ERC-8004 and appendix A.
func (s *suite) checkRegistrationFile(context.Context) (string, error) {
	a := s.registration
	if a.err == nil && a.status == http.StatusNotFound {
		return "", skip("/.well-known/agent-registration.json is not offered")
	}
	if err := a.is(http.StatusOK); err != nil {
		return "", err
	}
	return "served", registrationFile(a.body, s.state.AgentID)
}

// version is appendix A's.
var version = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

// registrationFile returns an error where a file is not a registration of an agent.
// agent is the id that health names. Members are matched without regard to case, as encoding/json does it.
func registrationFile(raw []byte, agent string) error {
	var f struct {
		AgentID       any
		Name, Version string
		Endpoints     map[string]any
		Registrations []struct{ AgentID json.RawMessage }
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return fmt.Errorf("the registration file is no JSON, or a member has another type: %w", err)
	}
	switch {
	case f.Name == "":
		return fmt.Errorf("the registration file has no name")
	case !version.MatchString(f.Version):
		return fmt.Errorf("the registration file's version is %.40q, wanted are three numbers", f.Version)
	case len(f.Endpoints) == 0:
		return fmt.Errorf("the registration file has no endpoints")
	case f.AgentID != agent:
		return fmt.Errorf("the registration file is of agent %v, health says %.80q", f.AgentID, agent)
	}
	for _, r := range f.Registrations {
		if strings.Trim(string(r.AgentID), `"`) == agent {
			return nil
		}
	}
	return fmt.Errorf("registrations of the registration file do not name agent %.80s", agent)
}

// checkCard reads the card by which agents of A2A find this one, where it is offered.
func (s *suite) checkCard(ctx context.Context) (string, error) {
	a := s.ask(ctx, http.MethodGet, "/.well-known/agent-card.json", nil, nil)
	if a.err == nil && a.status == http.StatusNotFound {
		return "", skip("/.well-known/agent-card.json is not offered")
	}
	if err := a.is(http.StatusOK); err != nil {
		return "", err
	}
	var card struct {
		Name, Description, Version string
		Skills                     []struct{ ID, Name string }
	}
	if err := json.Unmarshal(a.body, &card); err != nil {
		return "", fmt.Errorf("the agent card is no JSON, or a member has another type: %w", err)
	}
	if card.Name == "" || card.Version == "" || card.Skills == nil {
		return "", fmt.Errorf("the agent card has no name, version or skills")
	}
	return fmt.Sprintf("%d skills", len(card.Skills)), nil
}

// checkMCP begins a session over streamable HTTP.
//
// The answer is not added to seen: the protocol has no place for the headers of the specification, and the checks of
// headers would fail for it.
func (s *suite) checkMCP(ctx context.Context) (string, error) {
	const begin = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"repute","version":"1"}}}`
	a := &answer{what: "POST /mcp"}
	a.err = s.send(ctx, a, http.MethodPost, "/mcp", []byte(begin),
		http.Header{"Accept": {"application/json, text/event-stream"}})
	if a.err == nil && (a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed) {
		return "", skip("MCP is not offered at /mcp; it may be offered over stdio")
	}
	if err := a.is(http.StatusOK); err != nil {
		return "", err
	}
	if !bytes.Contains(a.body, []byte(`"serverInfo"`)) {
		return "", fmt.Errorf("initialize is answered with %.100s", a.body)
	}
	return "initialize is answered", nil
}

// target is a capability to send wrong requests to.
// The paid capability is preferred, so that the checks see whether a request is judged before money is asked for.
func (s *suite) target() (string, error) {
	switch {
	case s.o.Mode == Shutdown:
		return "", notAccepting
	case s.paid.name != "":
		return s.paid.name, nil
	case len(s.state.Capabilities) == 0 || !plain(s.state.Capabilities[0]):
		return "", skip("no capability is named")
	}
	return s.state.Capabilities[0], nil
}

// checkInvalid sends what is no JSON: bad input is refused before a payment is asked for.
func (s *suite) checkInvalid(ctx context.Context) (string, error) {
	name, err := s.target()
	if err != nil {
		return "", err
	}
	return s.call(ctx, request{name, []byte(`{"text":`)}, nil).refusal(http.StatusBadRequest)
}

// checkUnknown asks for a capability that no agent has: a wrong name is refused before a payment is asked for.
func (s *suite) checkUnknown(ctx context.Context) (string, error) {
	if s.o.Mode == Shutdown {
		return "", notAccepting
	}
	return s.call(ctx, request{"no-such-capability-of-any-agent", []byte(`{}`)}, nil).refusal(http.StatusNotFound)
}

// checkOversize sends one byte more than the limit.
//
// The body is valid JSON, so that only its length can be the reason of the refusal.
func (s *suite) checkOversize(ctx context.Context) (string, error) {
	name, err := s.target()
	if err != nil {
		return "", err
	}
	head, tail := `{"text":"`, `"}`
	body := make([]byte, 0, s.o.MaxBody+1)
	body = append(body, head...)
	body = append(body, bytes.Repeat([]byte("a"), int(s.o.MaxBody)+1-len(head)-len(tail))...)
	return s.call(ctx, request{name, append(body, tail...)}, nil).refusal(http.StatusRequestEntityTooLarge)
}

// checkFree looks at the answer of a free capability; its signature is checked with all others.
func (s *suite) checkFree(context.Context) (string, error) {
	switch {
	case s.o.Mode == Shutdown:
		return "", notAccepting
	case s.gift == nil:
		return "", skip("no free capability answered; give --capability and --input")
	case !json.Valid(s.gift.body):
		return "", fmt.Errorf("%s: the answer is no JSON: %.100s", s.gift.what, s.gift.body)
	}
	return s.gift.what, nil
}

// internals are parts of stack traces and of keys' names.
// They are the openings of stack traces of Go, JavaScript and Python, and the usual name of a key's variable. A body
// that quotes one in earnest fails the check as well.
var internals = []string{"goroutine ", "\n\tat ", "\\n    at ", "Traceback (most recent", "panic: ", "PRIVATE_KEY"}

// checkInternals looks for internals in all bodies of the suite, and above all in those of errors, which the wrong
// requests before it have provoked.
func (s *suite) checkInternals(context.Context) (string, error) {
	for _, a := range s.seen {
		i := slices.IndexFunc(internals, func(text string) bool { return bytes.Contains(a.body, []byte(text)) })
		if i >= 0 {
			return "", fmt.Errorf("%s: the answer shows internals (%q)", a.what, internals[i])
		}
	}
	return fmt.Sprintf("%d answers", len(s.seen)), nil
}
