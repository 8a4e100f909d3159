package payer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
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
}

// index asks the HTTP API of an index.
type index struct {
	base string
	http *http.Client
}

// maxAnswer bounds an answer of the index, in bytes.
const maxAnswer = 8 << 20

// get asks a route. repute.ErrNotFound where the index knows nothing by it, repute.ErrUnavailable
// where it does not answer with JSON.
func (x *index) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return repute.Invalid("index", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req.Header.Set("Accept", "application/json")
	res, err := x.http.Do(req)
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

// agents lists the ids of agents by a filter, on one chain, or on all where chainID is 0. At most
// a page of them is looked at.
func (x *index) agents(ctx context.Context, chainID uint64, filter, value string) (ids []string, err error) {
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
		Next *string `json:"next"`
	}
	path := "/agents"
	if chainID > 0 {
		path = fmt.Sprintf("/chains/%d/agents", chainID)
	}
	err = x.get(ctx, path, url.Values{filter: {value}, "limit": {"50"}}, &list)
	if errors.Is(err, repute.ErrNotFound) { // the chain is not indexed
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		ids = append(ids, a.ID)
	}
	return ids, nil
}

// proven reports whether a host proves an agent.
func (x *index) proven(ctx context.Context, agent, host string) (bool, error) {
	var a struct {
		DomainProofs []struct{ Domain, Verdict string } `json:"domainProofs"`
	}
	if err := x.get(ctx, "/agents/"+url.PathEscape(agent), nil, &a); err != nil {
		return false, err
	}
	for _, p := range a.DomainProofs {
		if strings.EqualFold(p.Domain, host) && p.Verdict == string(repute.DomainProven) {
			return true, nil
		}
	}
	return false, nil
}

// maxCandidates bounds how many agents of a host are looked at.
const maxCandidates = 10

// byDomain lists agents that a host proves.
func (x *index) byDomain(ctx context.Context, host string) (out []string, err error) {
	ids, err := x.agents(ctx, 0, "q", host)
	if err != nil {
		return nil, err
	}
	for _, id := range ids[:min(len(ids), maxCandidates)] {
		if proven, err := x.proven(ctx, id, host); err != nil {
			return nil, err
		} else if proven {
			out = append(out, id)
		}
	}
	return out, nil
}

// standing reads how far an agent is trusted.
func (x *index) standing(ctx context.Context, agent string) (p Payee, err error) {
	err = x.get(ctx, "/agents/"+url.PathEscape(agent)+"/reputation", nil, &p)
	return p, err
}

// payee names the agent that an account belongs to; nil where none is known. Accounts of other chains
// are not compared: the same address may be another party's contract there. Of several agents the one
// that is trusted least counts: an account is not better than what its agents did.
func (x *index) payee(ctx context.Context, chainID uint64, account common.Address, host string) (*Payee, error) {
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
		var least *Payee
		for _, id := range ids[:min(len(ids), maxCandidates)] {
			p, err := x.standing(ctx, id)
			if err != nil {
				return nil, err
			}
			if p.Agent, p.By = id, by; least == nil || p.Low < least.Low {
				least = &p
			}
		}
		if least != nil {
			return least, nil
		}
	}
	return nil, nil
}
