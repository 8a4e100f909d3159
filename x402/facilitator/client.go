package facilitator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"repute/x402"
)

// Client asks facilitators over HTTP. A payment is settled by the facilitator that verified it
// where that answers, so that two of them do not both send its transaction; the chain takes it
// once in any case. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	timeout time.Duration

	mu    sync.Mutex // of the times in known; URLs do not change
	known []endpoint // in the order in which they are asked
}

// endpoint is one facilitator.
type endpoint struct {
	url   string
	until time.Time // it failed, and is asked last until then
}

// Times of a Client.
const (
	// defaultTimeout is for one request. Facilitators answer a settlement when it is mined.
	defaultTimeout = 60 * time.Second
	resting        = 30 * time.Second // after a failure
)

// NewClient returns a client of the facilitators at the base URLs, which are asked in their order.
// A nil client is http.DefaultClient, a timeout of 0 one minute. Redirects are not followed.
func NewClient(client *http.Client, timeout time.Duration, urls ...string) (*Client, error) {
	if client == nil {
		client = http.DefaultClient
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{http: &own, timeout: timeout}
	if timeout <= 0 {
		c.timeout = defaultTimeout
	}
	for _, u := range urls {
		if !strings.HasPrefix(u, "https://") && !strings.HasPrefix(u, "http://") {
			return nil, fmt.Errorf("facilitator %.100q: is no URL, http or https is allowed", u)
		}
		c.known = append(c.known, endpoint{url: strings.TrimRight(u, "/")})
	}
	if len(c.known) == 0 {
		return nil, errors.New("facilitator: no URL")
	}
	return c, nil
}

// order returns the places of the facilitators, healthy ones first.
func (c *Client) order() (out []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var resting []int
	for i := range c.known {
		if time.Now().Before(c.known[i].until) {
			resting = append(resting, i)
			continue
		}
		out = append(out, i)
	}
	return append(out, resting...)
}

// mark notes whether a facilitator answered: one answer ends its rest, one failure begins it anew.
func (c *Client) mark(i int, healthy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[i].until = time.Time{}
	if !healthy {
		c.known[i].until = time.Now().Add(resting)
	}
}

// Verify implements Facilitator: the first facilitator that answers decides. An answer that names
// another payer than the payment's is none.
func (c *Client) Verify(ctx context.Context, p x402.Payment, r x402.Requirements) (v x402.Verification, err error) {
	body, err := requestBody(&p, &r)
	if err != nil {
		return v, err
	}
	for _, i := range c.order() {
		v = x402.Verification{}
		if err = c.ask(ctx, i, http.MethodPost, "/verify", body, &v); err != nil {
			continue
		}
		if v.IsValid == (v.InvalidReason != "") || v.Payer != "" && !strings.EqualFold(v.Payer, x402.PayerOf(&p)) {
			err = errors.New("the answer contradicts itself or names another payer")
			c.mark(i, false)
			continue
		}
		return v, nil
	}
	return x402.Verification{}, fmt.Errorf("%w: %w", x402.ErrUnavailable, err)
}

// Settle implements Facilitator. Where one facilitator gives no answer, its transaction may be under
// way, and another one is asked: both send the same authorization, which the chain takes once. Only
// a transaction's hash makes an answer a success; callers that must not believe a facilitator
// check the transaction on the chain.
func (c *Client) Settle(ctx context.Context, p x402.Payment, r x402.Requirements) (s x402.Settlement, err error) {
	body, err := requestBody(&p, &r)
	if err != nil {
		return s, err
	}
	asked := 0 // facilitators whose answer is open
	for _, i := range c.order() {
		s = x402.Settlement{}
		if err = c.ask(ctx, i, http.MethodPost, "/settle", body, &s); err != nil {
			asked++
			continue
		}
		if reason := strange(&s, &p, &r); reason != "" {
			err = errors.New(reason)
			c.mark(i, false)
			asked++
			continue
		}
		if id, err := x402.ChainOf(s.Network); err == nil {
			s.Network = x402.Network(id)
		}
		if !s.Success && asked > 0 {
			return s, fmt.Errorf("%w: one facilitator gave no answer, another refused: %s", x402.ErrUnknownEnd,
				s.ErrorReason)
		}
		return s, nil
	}
	return x402.Settlement{Network: r.Network}, fmt.Errorf("%w: %w", x402.ErrUnknownEnd, err)
}

// strange says what of a settlement cannot be; "" where nothing. A refusal may lack its network and payer; a success
// without a transaction is one of scheme upto that charges nothing.
func strange(s *x402.Settlement, p *x402.Payment, r *x402.Requirements) string {
	own, _ := x402.ChainOf(r.Network) // checked by requestBody
	said, err := x402.ChainOf(s.Network)
	free := r.Scheme == x402.SchemeUpto && r.Amount == (x402.Amount{})
	switch {
	case s.Success && (err != nil || said != own):
		return "the settlement is of another network"
	case s.Success && !isHash(s.Transaction) && !free:
		return "the settlement names no transaction"
	case s.Success && s.ErrorReason != "" || !s.Success && s.ErrorReason == "":
		return "the settlement contradicts itself"
	case s.Payer != "" && !strings.EqualFold(s.Payer, x402.PayerOf(p)):
		return "the settlement names another payer"
	case s.Success && s.Amount != nil && *s.Amount != r.Amount:
		return "the settlement is of another amount"
	}
	return ""
}

// isHash reports whether a text is 0x and 64 digits.
func isHash(text string) bool {
	digits, ok := strings.CutPrefix(text, "0x")
	return ok && len(digits) == 64 && strings.Trim(strings.ToLower(digits), "0123456789abcdef") == ""
}

// Supported implements Facilitator.
func (c *Client) Supported(ctx context.Context) (s x402.Supported, err error) {
	for _, i := range c.order() {
		s = x402.Supported{}
		if err = c.ask(ctx, i, http.MethodGet, "/supported", nil, &s); err == nil {
			return s, nil
		}
	}
	return x402.Supported{}, fmt.Errorf("%w: %w", x402.ErrUnavailable, err)
}

// requestBody writes the body of /verify and /settle in the form of the payment's version.
func requestBody(p *x402.Payment, r *x402.Requirements) ([]byte, error) {
	if _, err := x402.ChainOf(r.Network); err != nil {
		return nil, err
	}
	var of x402.Resource
	if p.Resource != nil {
		of = *p.Resource
	}
	requirements, err := x402.MarshalRequirements(*r, of, p.Version)
	if err != nil {
		return nil, err
	}
	payment, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("payment: %w", err)
	}
	return json.Marshal(facilitatorRequest{p.Version, payment, requirements})
}

// ask makes one request. Any status but 200 and 400 with a body of the expected form is a failure. 400 counts as an
// answer, because facilitators refuse requests with it. A failure is marked unless the caller itself gave up.
func (c *Client) ask(ctx context.Context, i int, method, path string, body []byte, into any) (err error) {
	defer func() {
		if ctx.Err() == nil {
			c.mark(i, err == nil)
		}
	}()
	within, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, method, c.known[i].url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("facilitator %d: %w", i+1, err)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("facilitator %d: %w", i+1, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("facilitator %d: %w", i+1, err)
	case len(raw) > maxBody:
		return fmt.Errorf("facilitator %d: the answer has more than %d bytes", i+1, maxBody)
	case res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest:
		return fmt.Errorf("facilitator %d: answered with status %d", i+1, res.StatusCode)
	}
	if err := x402.UnmarshalObject(raw, into); err != nil {
		return fmt.Errorf("facilitator %d: the answer is not JSON of the protocol: %w", i+1, err)
	}
	return nil
}
