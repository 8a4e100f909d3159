package web

import (
	"context"
	"fmt"
	"time"

	"repute/web/failure"
	"repute/web/format"
	"repute/web/query"
)

// partyRows is how many rows a page of a party's lists has.
const partyRows = 30

// blockTime is a block with its time.
type blockTime struct {
	Block int64
	Time  *time.Time
}

// raterTrust is what a reviewer weighs on a chain, and why.
type raterTrust struct {
	Epoch           int64
	Weight, Granted float64
	Root            bool
	Path, Sources   []string
	Identity        string
	Members         []string
	Read, Counted   int64
	CountedShare    *float64
	Excluded        []reasonCount
}

// reasonCount is how many rows do not count for a reason.
type reasonCount struct {
	Reason string
	Count  int64
}

// reviewerChain is a reviewer on one chain.
type reviewerChain struct {
	ChainID                  int64
	Ratings, Revoked, Agents int64
	IsRoot, IsReviewedWriter bool
	First, Last              *blockTime
	Related                  []struct{ Address, Agent, Role string }
	Trust                    *raterTrust
}

// Sentence says in words what the reviewer's opinion weighs there, and why.
func (c reviewerChain) Sentence() string {
	t := c.Trust
	switch {
	case t == nil:
		return "Nothing has been scored on this chain yet, so that nobody has weight."
	case t.Root || c.IsRoot:
		return "It is a root: the operator trusts it without anybody's word."
	case c.IsReviewedWriter:
		return "The operator has checked its ratings: they have weight, but it vouches for nobody."
	case len(t.Path) > 0 && t.Granted > 0:
		return fmt.Sprintf("Its opinion weighs %s of 1: trust reaches it in %s from a root, and sources give it more.",
			format.Number(min(1, t.Weight+t.Granted)), format.Plural(int64(len(t.Path)-1), "step"))
	case len(t.Path) > 0:
		return fmt.Sprintf("Its opinion weighs %s of 1: trust reaches it in %s from a root.", format.Number(t.Weight),
			format.Plural(int64(len(t.Path)-1), "step"))
	case t.Granted > 0:
		return fmt.Sprintf("Its opinion weighs %s of 1: no root vouches for it, but sources show facts that are costly to forge.",
			format.Number(t.Granted))
	}
	return "Its opinion weighs nothing: no root vouches for it, and no source knows it."
}

// reviewer is what is known of an address that rates.
type reviewer struct {
	Address  string
	Chains   []reviewerChain
	Feedback listOf[struct {
		Index      int64
		Decimal    string
		Tag1, Tag2 string
		IsRevoked  bool
		Given      point
		Agent      struct {
			ID, ShortID string
			Name        *string
			standing
		}
	}]
	AsOf []asOf
}

// reviewer shows what an address rated and the weight of its opinion.
func (s *site) reviewer(ctx context.Context, p *page) (string, error) {
	p.Title = "Reviewer " + format.Shorten(format.Short(p.ID))
	r, err := ask[struct{ Client reviewer }](ctx, s, p, "reviewer",
		query.Given(map[string]any{"address": p.ID, "first": partyRows, "after": p.Query.Get("after")}))
	p.Body = struct {
		reviewer
		Next string
	}{r.Client, nextPage(p, r.Client.Feedback.PageInfo)}
	return "reviewer", err
}

// validator is what is known of an address that validates.
type validator struct {
	Address     string
	Chains      []validatorChain
	Validations listOf[struct {
		validation
		Agent struct {
			ID, ShortID string
			Name        *string
		}
	}]
	AsOf []asOf
}

// validatorChain is how an address answers requests on one chain. Address and tags are asked for where they are shown.
type validatorChain struct {
	ChainID                     int64
	Address                     string
	Requests, Answered, Agents  int64
	AnsweredShare               float64
	MedianBlocks, MedianSeconds *int64
	MeanResponse                *float64
	First, Last                 *blockTime
	Tags                        []struct {
		Tag   string
		Count int64
	}
}

// validator shows how an address answers requests for validations.
func (s *site) validator(ctx context.Context, p *page) (string, error) {
	p.Title = "Validator " + format.Shorten(format.Short(p.ID))
	v, err := ask[struct{ Validator validator }](ctx, s, p, "validator",
		query.Given(map[string]any{"address": p.ID, "first": partyRows, "after": p.Query.Get("after")}))
	p.Body = struct {
		validator
		Next string
	}{v.Validator, nextPage(p, v.Validator.Validations.PageInfo)}
	return "validator", err
}

// manifest is what a domain says of itself, and what is proven of it.
type manifest struct {
	Domain, State        string
	Format, DisplayName  *string
	Tier, VerifiedTier   string
	URL, SHA256          *string
	IntentCount          int64
	Errors, Warnings     int64
	FetchedAt            *time.Time
	Stale                bool
	CheckedAt, NextCheck *time.Time
	Reason, Detail       *string
	Version, Origin      *string
	Description          *string
	PayoutAddress        *string
	Verdict              *verdict
	Commitments          []struct {
		Type, Constraint, Outcome, Reason string
		Verifiable                        bool
	}
	Intents []intent
	Links   []struct {
		Agent, How string
		Proven     bool
	}
	Problems []problem
}

// verdict is what is proven of a manifest.
type verdict struct {
	Served, Identified      bool
	IdentityReason, KeyForm *string
	Signature               string
	SignatureReason         *string
	Issuer                  *struct {
		Verified, Proven bool
		Reason           *string
	}
}

// domain shows a domain's manifest.
func (s *site) domain(ctx context.Context, p *page) (string, error) {
	p.Title = format.Short(p.ID)
	m, err := ask[struct{ Manifest *manifest }](ctx, s, p, "domain", map[string]any{"domain": p.ID})
	if err != nil {
		return "", err
	}
	if m.Manifest == nil {
		return "", failure.ErrNowhere
	}
	p.Body = *m.Manifest
	return "domain", nil
}
