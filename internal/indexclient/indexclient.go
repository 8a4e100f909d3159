// Package indexclient asks the HTTP API of an index for agents and their scores. It reads only what
// every index of the Agent Runtime Specification answers (its section 10), so that a runtime and a
// payer may ask an index of another program.
package indexclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"repute"
)

// Bounds of one question.
const (
	timeout   = 10 * time.Second
	maxAnswer = 8 << 20 // bytes: a page of agents with long metadata is some megabytes
)

// Client asks an index. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// New returns a client of the index at a base URL, which is reached by h, or by a client of its own
// where h is nil. Redirects are not followed: a score counts only from the host that was configured.
// repute.ErrInvalid where the base is no URL.
func New(base string, h *http.Client) (*Client, error) {
	if err := CheckURL("index", base); err != nil {
		return nil, err
	}
	own := http.Client{}
	if h != nil {
		own = *h
	}
	own.Timeout = cmp.Or(own.Timeout, timeout)
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(base, "/"), http: &own}, nil
}

// CheckURL refuses a text that is no base URL of an index. The error names the field.
func CheckURL(field, base string) error {
	if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return repute.Invalid(field, fmt.Sprintf("%.100q is no URL", base), "e.g. http://127.0.0.1:8080")
	}
	return nil
}

// get asks a route. repute.ErrNotFound where the index knows nothing by it, repute.ErrUnavailable
// where it does not answer with JSON.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return repute.Invalid("index", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("index: %w: %w", repute.ErrUnavailable, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("index: %w: %w", repute.ErrUnavailable, err)
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("index: GET %s: %w", path, repute.ErrNotFound)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("index: GET %s is answered with status %d: %w", path, res.StatusCode, repute.ErrUnavailable)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("index: GET %s is not answered with JSON: %w", path, repute.ErrUnavailable)
	}
	return nil
}

// Score is how far an agent is trusted, from -100 to 100.
type Score struct {
	Value     float64
	Low, High float64 // bounds of the score; Value where the index gives none
	Status    string  // such as StatusUnrated
	Feedback  int64   // how many ratings the agent has
	Tier      int64   // 0 to 4; 0 where the index gives none, or names it otherwise
}

// StatusUnrated is the status of an agent that nobody has rated.
const StatusUnrated = "unrated"

// answer is what is read of a reputation. Indexes of others have at least the score.
type answer struct {
	Score    *float64 `json:"score"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Status   string   `json:"status"`
	Feedback int64    `json:"feedbackCount"`
	Total    int64    `json:"totalFeedback"`
	Tier     any      `json:"tier"` // indexes of others have names for it
}

// Score reads the score of an agent, whose id is eip155:chain:registry:id, chain:id or, with a chain
// of more than 0, the token's. An answer without a score is repute.ErrUnavailable, never a score of 0.
func (c *Client) Score(ctx context.Context, chainID uint64, agent string) (s Score, err error) {
	path, query := "/agents/"+url.PathEscape(agent)+"/reputation", url.Values{}
	if chainID > 0 {
		query.Set("chainId", fmt.Sprint(chainID))
	}
	var a answer
	if err := c.get(ctx, path, query, &a); err != nil {
		return s, err
	}
	if a.Score == nil || math.Abs(*a.Score) > 100 {
		return s, fmt.Errorf("index: GET %s has no score between -100 and 100: %w", path, repute.ErrUnavailable)
	}
	s = Score{Value: *a.Score, Low: *a.Score, High: *a.Score, Status: a.Status, Feedback: max(a.Feedback, a.Total)}
	if tier, ok := a.Tier.(float64); ok && tier >= 0 && tier <= 4 {
		s.Tier = int64(tier)
	}
	if a.Low != nil {
		s.Low = *a.Low
	}
	if a.High != nil {
		s.High = *a.High
	}
	return s, nil
}

// Bounds of lists of agents.
const (
	// MaxFound bounds how many agents a search gives.
	MaxFound = 10
	// MaxAgents bounds how many agents an account may have: each of them is asked for its score.
	MaxAgents = 100
	// pageAgents is how many agents are asked for at once.
	pageAgents = 50
)

// page is one page of agents.
type page struct {
	Items []struct {
		ID string `json:"id"`
	} `json:"items"`
	Next *string `json:"next"` // cursor of the next page; nil at the end
}

// agents reads a page of agents on one chain, or on all where chainID is 0.
func (c *Client) agents(ctx context.Context, chainID uint64, query url.Values) (p page, err error) {
	path := "/agents"
	if chainID > 0 {
		path = fmt.Sprintf("/chains/%d/agents", chainID)
	}
	return p, c.get(ctx, path, query, &p)
}

// Search lists the ids of the first MaxFound agents that a text finds, on all chains.
func (c *Client) Search(ctx context.Context, text string) (ids []string, err error) {
	p, err := c.agents(ctx, 0, url.Values{"q": {text}, "limit": {fmt.Sprint(MaxFound)}})
	for _, a := range p.Items[:min(len(p.Items), MaxFound)] {
		ids = append(ids, a.ID)
	}
	return ids, err
}

// Agents lists the ids of all agents by a filter (wallet, owner) on one chain. repute.ErrNotFound where the chain is
// not indexed, repute.ErrLimited where there are more than MaxAgents: who looks for the least trusted one MUST NOT
// take a part for all.
func (c *Client) Agents(ctx context.Context, chainID uint64, filter, value string) (ids []string, err error) {
	query := url.Values{filter: {value}, "limit": {fmt.Sprint(pageAgents)}}
	for range MaxAgents/pageAgents + 1 {
		p, err := c.agents(ctx, chainID, query)
		if err != nil {
			return nil, err
		}
		for _, a := range p.Items {
			ids = append(ids, a.ID)
		}
		if len(ids) > MaxAgents {
			break
		}
		if p.Next == nil || *p.Next == "" {
			return ids, nil
		}
		query.Set("cursor", *p.Next)
	}
	return nil, fmt.Errorf("index: %s %s has more than %d agents, whose scores are not all read: %w", filter, value,
		MaxAgents,
		repute.ErrLimited)
}

// Proven reports whether a host proves an agent in its well-known file.
func (c *Client) Proven(ctx context.Context, agent, host string) (bool, error) {
	var a struct {
		DomainProofs []struct{ Domain, Verdict string } `json:"domainProofs"`
	}
	if err := c.get(ctx, "/agents/"+url.PathEscape(agent), nil, &a); err != nil {
		return false, err
	}
	for _, p := range a.DomainProofs {
		if strings.EqualFold(p.Domain, host) && p.Verdict == string(repute.DomainProven) {
			return true, nil
		}
	}
	return false, nil
}
