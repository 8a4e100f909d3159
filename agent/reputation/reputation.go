// Package reputation asks an index for scores over HTTP, as any runtime of the Agent Runtime
// Specification does (its section 10): GET {INDEXER_URL}/agents/{id}/reputation.
package reputation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
)

// Client asks an index. It is safe for concurrent use.
type Client struct {
	base string
	id   repute.AgentID
	http *http.Client
}

// timeout bounds one question.
const timeout = 10 * time.Second

// New returns a client of the index at a base URL, about an agent. Redirects are not followed.
func New(base string, id repute.AgentID) *Client {
	return &Client{base: strings.TrimRight(base, "/"), id: id, http: &http.Client{Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// answer is what is read of a reputation. Indexes of others have at least the score.
type answer struct {
	Score    *float64 `json:"score"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Status   string   `json:"status"`
	Feedback int64    `json:"feedbackCount"`
	Total    int64    `json:"totalFeedback"`
}

// Own implements agent.Reputation.
func (c *Client) Own(ctx context.Context) (agent.Score, error) {
	return c.score(ctx, "/agents/"+c.id.TokenID.Dec()+"/reputation", url.Values{"chainId": {fmt.Sprint(c.id.ChainID)}})
}

// score reads one score.
func (c *Client) score(ctx context.Context, path string, q url.Values) (s agent.Score, err error) {
	var a answer
	if err := c.get(ctx, path, q, &a); err != nil {
		return s, err
	}
	if a.Score == nil || math.Abs(*a.Score) > 100 {
		return s, fmt.Errorf("index: GET %s has no score between -100 and 100: %w", path, repute.ErrUnavailable)
	}
	s = agent.Score{Value: *a.Score, Low: *a.Score, High: *a.Score, Status: a.Status, Feedback: max(a.Feedback, a.Total),
		At: time.Now()}
	if a.Low != nil && a.High != nil {
		s.Low, s.High = *a.Low, *a.High
	}
	return s, nil
}

// maxAgents bounds how many agents of one client are looked at.
const maxAgents = 10

// Of returns the score of a client: that of the agent that it is wallet of, the lowest of several; an
// unrated one of 0 where it is none's.
func (c *Client) Of(ctx context.Context, client common.Address) (agent.Score, error) {
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	q := url.Values{"wallet": {client.Hex()}, "limit": {fmt.Sprint(maxAgents)}}
	out := agent.Score{Status: "unrated", At: time.Now()}
	if err := c.get(ctx, fmt.Sprintf("/chains/%d/agents", c.id.ChainID), q, &list); err != nil {
		return out, err
	}
	for i, a := range list.Items {
		s, err := c.score(ctx, "/agents/"+url.PathEscape(a.ID)+"/reputation", nil)
		if err != nil {
			return out, err
		}
		if i == 0 || s.Low < out.Low {
			out = s
		}
	}
	return out, nil
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 4 << 20

// get asks a route. repute.ErrUnavailable where it is not answered with JSON and status 200.
func (c *Client) get(ctx context.Context, path string, q url.Values, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path+"?"+q.Encode(), nil)
	if err != nil {
		return repute.Invalid("agent.indexer", "is no URL", "the base URL of an index (INDEXER_URL)")
	}
	r.Header.Set("Accept", "application/json")
	res, err := c.http.Do(r)
	if err != nil {
		return fmt.Errorf("index: %w", repute.ErrUnavailable)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("index: %w", repute.ErrUnavailable)
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("index: GET %s is answered with status %d: %w", path, res.StatusCode, repute.ErrUnavailable)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("index: GET %s is not answered with JSON: %w", path, repute.ErrUnavailable)
	}
	return nil
}
