// Package reputation asks an index over HTTP for the scores that a runtime works by: the agent's own, by which its
// policy chooses a mode, and those of its clients, by which the policy admits them.
//
// An index that does not know an agent may be behind: that is repute.ErrUnavailable and no score of zero, so that a
// policy decides what happens without an answer. Nothing is cached here.
package reputation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/internal/indexclient"
)

// Client asks an index about an agent and its clients. It is safe for concurrent use.
type Client struct {
	index *indexclient.Client
	id    repute.AgentID
}

// New returns a client of the index at a base URL, about an agent. repute.ErrInvalid where the base
// is no URL.
func New(base string, id repute.AgentID) (*Client, error) {
	index, err := indexclient.New(base, nil)
	if err != nil {
		return nil, err
	}
	return &Client{index: index, id: id}, nil
}

// Own implements agent.Reputation.
func (c *Client) Own(ctx context.Context) (agent.Score, error) {
	return c.score(ctx, c.id.ChainID, c.id.TokenID.Dec())
}

// score reads one score. An agent that the index does not know is repute.ErrUnavailable, as a runtime
// cannot tell it from an index that is behind.
func (c *Client) score(ctx context.Context, chainID uint64, id string) (agent.Score, error) {
	s, err := c.index.Score(ctx, chainID, id)
	if err != nil {
		return agent.Score{}, unavailable(err)
	}
	return agent.Score{Value: s.Value, Low: s.Low, High: s.High, Status: s.Status, Feedback: s.Feedback,
		At: time.Now()}, nil
}

// unavailable adds repute.ErrUnavailable to ErrNotFound and ErrLimited: the score is not known.
func unavailable(err error) error {
	if errors.Is(err, repute.ErrNotFound) || errors.Is(err, repute.ErrLimited) {
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	return err
}

// Of returns the score of a client, which is the score of the agent whose wallet the client is; of several, the one
// with the lowest lower bound. A client that is no agent's wallet is unrated, with a score of 0. repute.ErrUnavailable:
// the client has too many agents to ask for.
func (c *Client) Of(ctx context.Context, client common.Address) (agent.Score, error) {
	out := agent.Score{Status: indexclient.StatusUnrated, At: time.Now()}
	ids, err := c.index.Agents(ctx, c.id.ChainID, "wallet", client.Hex())
	if err != nil {
		return out, unavailable(err)
	}
	for i, id := range ids {
		s, err := c.score(ctx, 0, id)
		if err != nil {
			return out, err
		}
		if i == 0 || s.Low < out.Low {
			out = s
		}
	}
	return out, nil
}
