package compliance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent/signed"
	"repute/x402"
)

// Registered is what a chain says of an agent.
type Registered struct {
	Owner, Wallet common.Address // Wallet is zero where none is set
	// URI is the document that the chain names for the agent, empty where none is set.
	URI string
}

// Chain reads the identity registry. The error is repute.ErrNotFound where no such agent is registered.
// It is an interface so that a command can read one chain of several, by the id that the signed answers give. Another
// error than repute.ErrNotFound and repute.ErrInvalid skips the checks that need the chain.
type Chain interface {
	Agent(ctx context.Context, id repute.AgentID) (Registered, error)
}

// Documents reads what a URI names: the registration file and the policy.
// It MUST bound what it reads: the URIs are the agent's.
type Documents interface {
	Read(ctx context.Context, uri string) ([]byte, error)
}

// Mode is how the agent is expected to work.
type Mode string

// Modes.
const (
	Normal   Mode = "normal"
	Degraded Mode = "degraded" // it serves, and says so
	Shutdown Mode = "shutdown" // it accepts nothing
)

// Defaults of Options.
const (
	defaultTimeout = 30 * time.Second // of a request
	// DefaultMaxBody MUST be the limit that the runtime has: the suite sends one byte more, and expects a refusal.
	DefaultMaxBody = 10 << 20 // bytes, section 11.1
	DefaultMaxPay  = 100_000  // smallest units: 0.10 USDC
)

// Options say what is checked and with what.
//
// Only URL is needed. Every check whose option is missing is skipped with a reason, and Report.Exit is then 2 unless
// another check failed.
type Options struct {
	URL    string       // of the runtime
	Client *http.Client // nil: one that follows no redirect
	// Timeout bounds a request, defaultTimeout when 0.
	Timeout time.Duration
	// Chain is nil where registration and signers cannot be checked.
	Chain Chain
	// Documents is nil where URIs cannot be read.
	Documents Documents
	// MetadataURI is the URI that the chain must have, or "" to accept any URI.
	MetadataURI string
	// Policy is the URI of policy.json, or "" for the URI in the registration file.
	Policy string
	// Capability and Input are the paid request; empty: the first that demands a payment.
	Capability string
	// Input without Capability is tried for each capability of the runtime.
	Input json.RawMessage
	// Payer signs payments; nil: nothing is paid. MaxPay bounds one payment, in smallest units.
	Payer  x402.Signer
	MaxPay uint64
	// MaxBody is the limit of requests of the runtime, in bytes.
	MaxBody int64
	Mode    Mode // Normal when empty
}

// Check is the outcome of one check.
type Check struct {
	ID      string `json:"id"`
	Section string `json:"section"` // of the specification
	// OK is false for a skipped check too: a reader MUST look at Skipped first.
	OK      bool   `json:"ok"`
	Skipped bool   `json:"skipped,omitempty"` // it could not be made: OK says nothing
	Detail  string `json:"detail,omitempty"`
}

// Report has the outcomes in the order of the checks.
type Report struct {
	URL    string  `json:"url"`
	Agent  string  `json:"agent"` // full id where it is known
	Checks []Check `json:"checks"`
	OK     bool    `json:"ok"` // no check failed
}

// Exit is the exit code of a command: 1 where a check failed, 2 where one could not be made, else 0.
func (r *Report) Exit() int {
	switch {
	case !r.OK:
		return 1
	case slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Skipped }):
		return 2
	}
	return 0
}

// skip says why a check cannot be made.
// It is an error, so that a check can return it in place of a failure from any depth; Run tells the two apart with
// errors.As.
type skip string

// Error implements error.
func (s skip) Error() string { return string(s) }

// check is one of the suite. It returns what it saw.
type check struct {
	id, section string
	run         func(ctx context.Context) (string, error)
}

// Run makes all checks. The error is for options that are wrong; what the runtime does is in the
// report.
//
// The error is repute.ErrInvalid for wrong options, and the cause of ctx where that ends before the last check: a
// report that is not complete is none. The checks are made one after the other, since later ones read what earlier
// ones saw.
func Run(ctx context.Context, o Options) (*Report, error) {
	s, err := newSuite(o)
	if err != nil {
		return nil, err
	}
	s.look(ctx)
	out := &Report{URL: s.o.URL, OK: true}
	for _, c := range s.checks() {
		detail, err := c.run(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var why skip
		result := Check{ID: c.id, Section: c.section, OK: err == nil, Detail: detail}
		switch {
		case errors.As(err, &why):
			result.Skipped, result.Detail = true, string(why)
		case err != nil:
			result.Detail, out.OK = err.Error(), false
		}
		result.Detail = shown(result.Detail)
		out.Checks = append(out.Checks, result)
	}
	out.Agent = s.agent()
	return out, nil
}

// newSuite checks options and fills in defaults. No redirect is followed, unless the caller's own client does: the
// signatures and headers that are checked are those of the runtime that was named.
func newSuite(o Options) (*suite, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, repute.Invalid("url", fmt.Sprintf("%.80q is no URL of a runtime", o.URL),
			"http://HOST:PORT or https://HOST")
	}
	o.URL = strings.TrimRight(o.URL, "/")
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.MaxBody = cmp.Or(o.MaxBody, DefaultMaxBody)
	o.MaxPay = cmp.Or(o.MaxPay, DefaultMaxPay)
	o.Mode = cmp.Or(o.Mode, Normal)
	if o.Mode != Normal && o.Mode != Degraded && o.Mode != Shutdown {
		return nil, repute.Invalid("expect-mode", fmt.Sprintf("%.40q is no mode", string(o.Mode)),
			"normal, degraded or shutdown")
	}
	if len(o.Input) > 0 && !json.Valid(o.Input) {
		return nil, repute.Invalid("input", "is no JSON", "an input of the capability")
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: transport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &suite{o: o, secure: u.Scheme == "https", host: u.Hostname()}, nil
}

// transport asks before it sends a large body, so that a refusal is read.
//
// Compression is off, because signatures are over the bytes of the body. The bound of headers is above that of a
// payment, so that a demand which is too long is judged by its check and not refused here.
func transport() *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment, ExpectContinueTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 10 * time.Second, DisableCompression: true,
		MaxResponseHeaderBytes: 4 * x402.MaxHeader}
}

// shown bounds untrusted text and keeps it on one line.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, text)
	return fmt.Sprintf("%.400s", text)
}

// suite is one run of the checks.
//
// One goroutine runs it. The members below seen are filled by look and by the checks in their order, and are nil or
// empty where nothing of the kind was seen.
type suite struct {
	o      Options
	secure bool
	host   string
	seen   []*answer // all of them, for the checks of headers and signatures

	health *answer
	// state is health as far as it could be decoded; its check reads the body again, strictly.
	state        health
	registration *answer
	demand       *answer // the 402 of the paid capability
	paid         request // what it answered
	gift         *answer // the 200 of a free capability
	settled      *answer // of the payment
	payment      http.Header
	onChain      *Registered
	domain       signed.Domain // of the first answer that is signed in full
}

// request is a capability with an input.
type request struct {
	name  string
	input json.RawMessage
}

// agent is the full id, or what health says.
func (s *suite) agent() string {
	id, err := repute.ParseTokenID(s.state.AgentID)
	if err != nil {
		return ""
	}
	if (s.domain == signed.Domain{}) {
		return s.state.AgentID
	}
	full := repute.AgentID{ChainID: s.domain.ChainID, Registry: s.domain.Registry, TokenID: id}
	return full.String()
}

// checks is the suite in its order: those over all answers are the last.
//
// The order matters beyond that: checkPaid fills settled, which the checks of replays and receipts need, and
// checkSignatures finds the domain by which the chain is asked. IDs are part of the report's format, and the sections
// are those of the Agent Runtime Specification.
func (s *suite) checks() []check {
	return []check{
		{"https", "4.1", s.checkHTTPS},
		{"health", "4.1, 16", s.checkHealth},
		{"ready", "14", s.checkReady},
		{"mode", "6.3", s.checkMode},
		{"registration-file", "A", s.checkRegistrationFile},
		{"agent-card", "4.3", s.checkCard},
		{"mcp", "4.2", s.checkMCP},
		{"invalid-400", "7.3, B", s.checkInvalid},
		{"unknown-404", "B", s.checkUnknown},
		{"oversize-413", "11.1, B", s.checkOversize},
		{"payment-headers", "5.1", s.checkPaymentHeaders},
		{"payment-body", "5.1, B", s.checkPaymentBody},
		{"task-hash", "5.1, 5.2", s.checkTaskHash},
		{"x402-v2", "5.1", s.checkV2},
		{"x402-v1", "5.1", s.checkV1},
		{"malformed-payment", "5.2, B", s.checkMalformed},
		{"unsigned-receipt", "11.3", s.checkUnsignedReceipt},
		{"forged-payment", "5.2, 11.3", s.checkForged},
		{"other-price", "5.2, 11.3", s.checkOtherPrice},
		{"paid", "5.1, 16", s.checkPaid},
		{"replay", "5.1", s.checkReplay},
		{"replay-other", "5.2", s.checkReplayOther},
		{"free", "5.3", s.checkFree},
		{"receipts", "10", s.checkReceipts},
		{"headers", "4.1", s.checkHeaders},
		{"signatures", "3.2, 16", s.checkSignatures},
		{"registered", "3, 16", s.checkRegistered},
		{"metadata", "3, 16", s.checkMetadata},
		{"policy", "6.1, 16", s.checkPolicy},
		{"no-internals", "11.2", s.checkInternals},
	}
}
