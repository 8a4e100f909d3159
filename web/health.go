package web

import (
	"context"
	"strconv"
	"time"

	"repute"
	"repute/web/failure"
	"repute/web/format"
	"repute/web/query"
)

// endpoint is a JSON-RPC endpoint as one process sees it.
type endpoint struct {
	Name, Process, Kind, State      string
	LatencyMs, ErrorRate, RateLimit float64
	Requests, Failures              int64
	Head                            *int64
	LastError                       *string
	LastOkAt                        *time.Time
}

// blockRange is a range of blocks with both ends.
type blockRange struct{ From, To int64 }

// kindHealth is how much of one kind of event the index vouches for.
type kindHealth struct {
	Kind, Status, Reason string
	VerifiedToBlock      *int64
	Pending, OpenGaps    int64
	Gaps                 []gap
}

// gap is a range of blocks whose events are known to be missing.
type gap struct {
	Agent, Client  *string
	Blocks         blockRange
	Reason         string
	Since, NextTry *time.Time
	Tries          int64
}

// health is how the index of a chain is.
type health struct {
	ChainID                   int64
	Name                      string
	StartBlock                int64
	Imported, Halted, Stalled bool
	LastError                 *string
	Reorgs, Upgrades          int64
	UpgradedAtBlock           *int64
	Registries                struct {
		Identity, Reputation string
		Validations          []string
	}
	Documents struct{ Known, Due int64 }
	Endpoints []endpoint
	Kinds     []kindHealth
	AsOf      struct {
		asOf
		Safe, Finalized *int64
		HeadSeenAt      *time.Time
		All             struct {
			VerifiedToBlock    *int64
			Pending, Undecoded int64
			Ranges             []blockRange
		}
	}
}

// Gaps reports whether events of any kind are known to be missing.
func (h health) Gaps() bool {
	for _, k := range h.Kinds {
		if len(k.Gaps) > 0 {
			return true
		}
	}
	return false
}

// chainHealth shows how healthy the index of one chain is.
func (s *site) chainHealth(ctx context.Context, p *page) (string, error) {
	p.Title = "Chain " + format.Short(p.ID)
	id, err := strconv.ParseInt(p.ID, 10, 64)
	if err != nil {
		return "", repute.Invalid("chain", "not a number", "the id of a chain, such as 8453")
	}
	h, err := ask[struct{ Chains []health }](ctx, s, p, "chain", nil)
	if err != nil {
		return "", err
	}
	for _, c := range h.Chains {
		if c.ChainID == id {
			p.Body = c
			return "chain", nil
		}
	}
	return "", failure.ErrNowhere
}

// offered is what a search of offers found.
type offered struct {
	Kind               string
	Domain, Agent      *string
	Agents             int64
	Tier, VerifiedTier string
	Name, Description  string
	URL, Price         *string
	Stale              bool
	Score              float64
}

// intents shows what services offer, by meaning, price and trust.
func (s *site) intents(ctx context.Context, p *page) (string, error) {
	p.Title = "Offers"
	q := p.Query.Get("q")
	variables := map[string]any{"query": q, "kind": p.Query.Get("kind"), "protocol": p.Query.Get("protocol"),
		"maxPrice": p.Query.Get("maxPrice"), "first": exploreRows, "after": p.Query.Get("after")}
	if least := p.Query.Get("minScore"); least != "" {
		n, err := strconv.ParseFloat(least, 64)
		if err != nil || n < -100 || n > 100 {
			return "", repute.Invalid("minScore", "not a score", "a number from -100 to 100")
		}
		variables["minScore"] = n
	}
	l, err := ask[struct {
		Intents struct {
			listOf[offered]
			Unsure bool
		}
	}](ctx, s, p, "intents", query.Given(variables))
	p.Body = struct {
		Offers []offered
		Words  string
		Unsure bool
		Next   string
	}{l.Intents.Nodes, q, l.Intents.Unsure && q != "" && len(l.Intents.Nodes) > 0, nextPage(p, l.Intents.PageInfo)}
	return "intents", err
}

// validators shows who validates, by chain.
func (s *site) validators(ctx context.Context, p *page) (string, error) {
	p.Title = "Validators"
	l, err := ask[struct{ Validators listOf[validatorChain] }](ctx, s, p, "validators",
		query.Given(map[string]any{"first": exploreRows, "after": p.Query.Get("after")}))
	p.Body = struct {
		List []validatorChain
		AsOf []asOf
		Next string
	}{l.Validators.Nodes, l.Validators.AsOf, nextPage(p, l.Validators.PageInfo)}
	return "validators", err
}
