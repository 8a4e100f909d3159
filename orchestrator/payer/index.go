package payer

import (
	"context"
	"errors"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/indexclient"
)

// Ways by which an account is found to be an agent's.
const (
	ByWallet = "wallet" // the agent's verified wallet on the chain of the payment
	ByOwner  = "owner"  // the agent's owner on the chain of the payment
	ByDomain = "domain" // the server's host proves the agent in its well-known file
)

// Payee is the agent that is paid, and how far it is trusted.
type Payee struct {
	Agent  string  `json:"agent"` // eip155:chain:registry:id
	By     string  `json:"by"`    // ByWallet, ByOwner or ByDomain
	Score  float64 `json:"score"`
	Low    float64 `json:"low"` // one standard deviation below: what thresholds are compared with
	Status string  `json:"status"`
	Tier   int64   `json:"tier"` // 0 to 4; 0 where the index gives none
}

// index names agents by the accounts that are paid.
type index struct{ *indexclient.Client }

// agents lists the ids of agents by a filter on one chain; none where the chain is not indexed.
func (x index) agents(ctx context.Context, chainID uint64, filter, value string) ([]string, error) {
	ids, err := x.Agents(ctx, chainID, filter, value)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	}
	return ids, err
}

// byDomain lists agents that a host proves.
func (x index) byDomain(ctx context.Context, host string) (out []string, err error) {
	ids, err := x.Search(ctx, host)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if proven, err := x.Proven(ctx, id, host); err != nil {
			return nil, err
		} else if proven {
			out = append(out, id)
		}
	}
	return out, nil
}

// payee names the agent that an account belongs to; nil where none is known. Accounts of other chains
// are not compared: the same address may be another party's contract there. Of several agents the one
// that is trusted least counts: an account is not better than what its agents did.
func (x index) payee(ctx context.Context, chainID uint64, account common.Address, host string) (*Payee, error) {
	for _, by := range []string{ByWallet, ByOwner, ByDomain} {
		var ids []string
		var err error
		if by == ByDomain {
			ids, err = x.byDomain(ctx, host)
		} else {
			ids, err = x.agents(ctx, chainID, by, account.Hex())
		}
		if err != nil {
			return nil, err
		}
		least, err := x.least(ctx, ids, by)
		if err != nil || least != nil {
			return least, err
		}
	}
	return nil, nil
}

// least returns the agent with the lowest bound of its score; nil of none.
func (x index) least(ctx context.Context, ids []string, by string) (least *Payee, err error) {
	for _, id := range ids {
		s, err := x.Score(ctx, 0, id)
		if err != nil {
			return nil, err
		}
		if least == nil || s.Low < least.Low {
			least = &Payee{Agent: id, By: by, Score: s.Value, Low: s.Low, Status: s.Status, Tier: s.Tier}
		}
	}
	return least, nil
}
