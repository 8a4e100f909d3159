package web

import (
	"context"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/web/query"
)

// compared is an agent in a comparison.
type compared struct {
	Agent, ShortID string
	Name           *string
	standing
	Confidence         float64
	Sentence           string
	Reason             *string
	Reviewers, Ratings int64
	Tags               []struct {
		Tag              string
		Count, Reviewers int64
		Median           struct{ Decimal string }
		Unit             *string
	}
	Lacks       []gate
	KeptOut     []string
	Services    []struct{ Name string }
	X402Support *bool
	Manifest    *struct{ Domain, Tier, VerifiedTier string }
	Prices      []struct {
		Intent string
		Price  *string
	}
}

// comparison is agents side by side.
type comparison struct {
	Agents      []compared
	Differences []struct {
		What     string
		Best     *string
		Sentence string
	}
	AsOf []asOf
}

// compare shows two to five agents side by side. Without ids it asks for them.
func (s *site) compare(ctx context.Context, p *page) (string, error) {
	p.Title = "Compare"
	ids := strings.FieldsFunc(strings.Join(p.Query["id"], " "),
		func(r rune) bool { return r == ' ' || r == ',' || r == '+' })
	body := struct {
		comparison
		IDs string
	}{IDs: strings.Join(ids, " ")}
	if len(ids) > 0 {
		if len(ids) < 2 || len(ids) > 5 {
			return "", repute.Invalid("id", "a comparison has two to five agents", "e.g. ?id=8453:1+8453:2")
		}
		c, err := ask[struct{ Compare comparison }](ctx, s, p, "compare", map[string]any{"ids": ids})
		if err != nil {
			return "", err
		}
		body.comparison = c.Compare
	}
	p.Body = body
	return "compare", nil
}

// leader is a ranked agent.
type leader struct {
	Rank                     int64
	Value                    float64
	Reviewers                int64
	NewReviewers, NewRatings *int64
	Agent                    agentRow
}

// leaders shows agents by rank.
func (s *site) leaders(ctx context.Context, p *page) (string, error) {
	p.Title = "Leaders"
	variables := map[string]any{"by": p.Query.Get("by"), "first": exploreRows, "after": p.Query.Get("after")}
	if p.Is("by", "growth") {
		variables["period"] = p.Query.Get("period")
	}
	if least := p.Query.Get("minReviewers"); least != "" {
		n, err := strconv.ParseInt(least, 10, 32)
		if err != nil {
			return "", repute.Invalid("minReviewers", "not a number", "e.g. 3")
		}
		variables["minReviewers"] = n
	}
	l, err := ask[struct{ Leaderboard listOf[leader] }](ctx, s, p, "leaders", query.Given(variables))
	p.Body = struct {
		Leaders []leader
		AsOf    []asOf
		Next    string
		Growth  bool
	}{l.Leaderboard.Nodes, l.Leaderboard.AsOf, nextPage(p, l.Leaderboard.PageInfo), p.Is("by", "growth")}
	return "leaders", err
}

// tagRow is how a tag is used and what it means.
type tagRow struct {
	Tag                     string
	Ratings, Agents, Raters int64
	ScoredShare             float64
	Meaning                 *struct {
		Unit, Better, Channel, Use string
		Weight                     float64
		Min, Max                   *float64
		Reason                     string
	}
}

// tags shows the tags of ratings, or the second tags of one.
func (s *site) tags(ctx context.Context, p *page) (string, error) {
	p.Title = "Tags"
	variables := query.Given(map[string]any{"first": 50, "after": p.Query.Get("after")})
	if p.Query.Has("tag") {
		variables["tag"] = p.Query.Get("tag")
	}
	l, err := ask[struct{ Tags listOf[tagRow] }](ctx, s, p, "tags", variables)
	p.Body = struct {
		Tags  []tagRow
		AsOf  []asOf
		Next  string
		Below bool
		Tag   string
	}{l.Tags.Nodes, l.Tags.AsOf, nextPage(p, l.Tags.PageInfo), p.Query.Has("tag"), p.Query.Get("tag")}
	return "tags", err
}

// trustChain is what the scores of a chain are based on.
type trustChain struct {
	ChainID int64
	Name    string
	Scores  struct {
		Epoch, Block          *int64
		WalkedAt              *time.Time
		Final, Late, Verified bool
		Roots, Stale          int64
		VerifiedTo            *int64
		Sources               []sourceState
		Coverage              coverage
	}
	AsOf asOf
}

// sourceState is how a source was read.
type sourceState struct {
	Source, Status     string
	Reason             *string
	Chain, Block       int64
	ReadAt, CompleteAt *time.Time
	Kept               int64
}

// counted is how many of all count.
type counted struct{ All, Counted int64 }

// coverage is how many ratings, raters and agents count in the scores of a chain.
type coverage struct {
	Rated, Thin, Several, ByRoots int64
	Records, Raters, Agents       counted
	BySource                      []struct {
		Source string
		Count  int64
	}
	ToFifty *struct {
		Dollars          *float64
		Units            float64
		Priced, Unpriced []string
	}
	Left []reasonCount
	Tags []struct {
		Tag, Reason string
		Records     int64
	}
}

// scoreHashes are the hashes of the inputs of a score.
type scoreHashes struct {
	Params, Tags, Roots         string
	Links, Sources, Credentials *string
}

// hashesOf are the hashes of the inputs of an agent's score.
type hashesOf struct {
	Scorer *string
	Hashes *scoreHashes
	Of     string // short id of the agent
}

// scoredHashes returns the hashes of the inputs of a score. They are empty where no agent is rated.
func (s *site) scoredHashes(ctx context.Context, p *page) (out hashesOf, err error) {
	h, err := ask[struct {
		Agents struct {
			Nodes []struct {
				ShortID    string
				Reputation struct {
					Scored struct {
						Scorer *string
						Hashes *scoreHashes
					}
				}
			}
		}
	}](ctx, s, p, "trust_hashes", map[string]any{})
	for _, a := range h.Agents.Nodes {
		out = hashesOf{a.Reputation.Scored.Scorer, a.Reputation.Scored.Hashes, a.ShortID}
	}
	return out, err
}

// trust shows what scores are based on: roots, sources, coverage, parameters.
func (s *site) trust(ctx context.Context, p *page) (string, error) {
	p.Title = "Trust"
	t, err := ask[struct{ Chains []trustChain }](ctx, s, p, "trust", nil)
	if err != nil {
		return "", err
	}
	h, err := s.scoredHashes(ctx, p)
	p.Body = struct {
		Chains []trustChain
		hashesOf
	}{t.Chains, h}
	return "trust", err
}
