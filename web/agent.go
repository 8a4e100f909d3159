package web

import (
	"context"
	"fmt"
	"math"
	"time"

	"repute/web/failure"
	"repute/web/format"
	"repute/web/query"
)

// agentRows is how many rows a page of an agent's lists has.
const agentRows = 30

// agentPage is what every page of an agent shows around its own content.
type agentPage struct {
	Head agentHead
	// Agent is the answer, of the type of the page.
	Agent any
	// Next is the URL of the next page of the list; "" without one.
	Next string
	// Chart is what a script draws over time; "" for nothing.
	Chart string
	// Offers are intents with prices; nil where no domain offers any.
	Offers *offers
	// Runs are the runs of the orchestrator that the agent does; nil on other pages than that of its work.
	Runs *guarded
}

// agentFull is all that the first page of an agent shows.
type agentFull struct {
	agentHead
	Approved                        *string
	URI                             string
	OwnerClaimed                    bool
	Registered, Updated             point
	Description                     *string
	Services                        []struct{ Name, Endpoint, Version string }
	Skills, Domains, SupportedTrust []string
	X402Support                     *bool
	Link                            *string
	Document                        document
	DomainProofs                    []struct {
		Domain, Verdict string
		Reason          *string
		CheckedAt       *time.Time
	}
	Manifest *struct {
		Domain, Tier, VerifiedTier string
		Intents                    int64
		How                        string
		Proven                     bool
	}
	Reputation reputation
	Series     struct {
		Points []scorePoint
		AsOf   asOf
	}
}

// document is what is known of the file behind an agent's URI.
type document struct {
	Status             string
	Source, SHA256     *string
	Size               int64
	FetchedAt, NextTry *time.Time
	Reason, Detail     *string
	Problems           []problem
	ProblemCount       int64
	Proof              struct {
		Verdict string
		By      *string
	}
}

// reputation is the score of an agent with its gates, the totals of its ratings by tag, and how independent its raters
// are.
type reputation struct {
	Scored struct {
		Sentence   string
		Reason     *string
		Confidence float64
		Guard      *struct {
			Agent string
			Score float64
			Role  string
		}
		Gates    []gate
		Finality *string
		Epoch    *int64
		Verified bool
		ScoredAt *timed
		Roots    *string
	}
	Tags         []tagSummary
	TagsTotal    int64
	Independence struct {
		Ratings, Raters, Clusters int64
		OneAgentShare, Burstiness float64
	}
}

// tagSummary is the totals of the ratings with one tag.
type tagSummary struct {
	Tag                    string
	Count, Reviewers       int64
	Median, Mean, Min, Max struct{ Decimal string }
	Unit                   *string
}

// scorePoint is a score at the end of a day.
type scorePoint struct {
	Start            time.Time
	Value, Low, High *float64
}

// ofAgent runs a document about the agent of a page. failure.ErrNowhere: there is no such agent.
func ofAgent[T any](ctx context.Context, s *site, p *page, name string, variables map[string]any) (T, error) {
	p.Title = "Agent " + format.Short(p.ID)
	variables["id"] = p.ID
	a, err := ask[struct{ Agent *T }](ctx, s, p, name, query.Given(variables))
	if err != nil || a.Agent == nil {
		var none T
		if err == nil {
			err = failure.ErrNowhere
		}
		return none, err
	}
	return *a.Agent, nil
}

// listed is ofAgent for documents that ask for a list of one agent: what hangs below a list is read with fewer
// statements.
func listed[T any](ctx context.Context, s *site, p *page, name string, variables map[string]any) (agent T, err error) {
	p.Title = "Agent " + format.Short(p.ID)
	variables["id"] = p.ID
	list, err := ask[struct{ AgentsByID []*T }](ctx, s, p, name, query.Given(variables))
	if err != nil {
		return agent, err
	}
	if len(list.AgentsByID) != 1 || list.AgentsByID[0] == nil {
		return agent, failure.ErrNowhere
	}
	return *list.AgentsByID[0], nil
}

// agent shows who an agent is and whether it may be trusted.
func (s *site) agent(ctx context.Context, p *page) (string, error) {
	a, err := listed[agentFull](ctx, s, p, "agent", map[string]any{})
	if err != nil {
		return "", err
	}
	var dots []format.Dot
	for _, x := range a.Series.Points {
		dots = append(dots, format.Dot{At: x.Start, Value: x.Value, Low: x.Low, High: x.High})
	}
	drawn, err := format.Chart(dots)
	if err != nil {
		return "", err
	}
	a.AsOf = &a.Series.AsOf
	a.agentHead.Document.Status, a.agentHead.Document.ProblemCount = a.Document.Status, a.Document.ProblemCount
	p.named(a.agentHead)
	p.Scripts = []string{"uPlot.min.js", "charts.js"}
	p.Body = agentPage{Head: a.agentHead, Agent: a, Chart: drawn}
	return "agent", nil
}

// named gives the page the name of its agent.
func (p *page) named(a agentHead) {
	p.Title = format.Short(format.OrElse(a.Name, "Agent "+a.ShortID))
}

// contribution is a part of a score.
type contribution struct {
	Kind                                 string
	Points                               float64
	Channel                              *string
	Raters                               []string
	Weight, Opinion, Evidence, Unvouched float64
	Path                                 []string
	Count                                int64
	Rows                                 []struct {
		Tx          *string
		Block       *int64
		Time        *time.Time
		Rater       string
		Index       int64
		Tag1, Value string
	}
}

// explained is what a score is made of.
type explained struct {
	agentHead
	Explain struct {
		standing
		Sentence string
		Reason   *string
		Finality *string
		Epoch    *int64
		Verified bool
		ScoredAt *struct {
			Block int64
			Hash  *string
			Time  *time.Time
		}
		Hashes *struct {
			Params, Tags, Roots string
			Sources, Evidence   *string
		}
		Contributions []contribution
		Excluded      []struct {
			Tx          *string
			Time        *time.Time
			Rater       string
			Tag1, Value string
			Reason      string
			Readings    []string
		}
		ExcludedByReason []struct {
			Reason string
			Count  int64
		}
		Counterfactuals []struct {
			Without []string
			standing
		}
	}
}

// Most returns the largest number of points of a contribution, to compare bars with.
func (e explained) Most() (most float64) {
	for _, c := range e.Explain.Contributions {
		most = math.Max(most, math.Abs(c.Points))
	}
	return most
}

// agentScore shows what a score is made of.
func (s *site) agentScore(ctx context.Context, p *page) (string, error) {
	a, err := ofAgent[explained](ctx, s, p, "agent_score", map[string]any{})
	p.named(a.agentHead)
	p.Body = agentPage{Head: a.agentHead, Agent: a}
	return "agent_score", err
}

// ratedAgent is an agent with a page of its ratings.
type ratedAgent struct {
	agentHead
	Feedback listOf[struct {
		Client        string
		Index         int64
		Decimal       string
		Tag1, Tag2    string
		Endpoint      string
		IsRevoked     bool
		ResponseCount int64
		Given         point
		Payment       *struct {
			State, Reason, Amount, Symbol, USD, TxHash *string
		}
		File *struct {
			Status   string
			Reason   *string
			Proof    struct{ Verdict string }
			Feedback *struct{ Text string }
		}
	}]
	Series struct {
		Points []struct {
			Start time.Time
			Value *float64
		}
		Undated int64
	}
}

// agentRatings shows the ratings of an agent.
func (s *site) agentRatings(ctx context.Context, p *page) (string, error) {
	variables := map[string]any{"first": agentRows, "after": p.Query.Get("after"), "tag": p.Query.Get("tag")}
	if p.Is("revoked", "true") {
		variables["revoked"] = true
	}
	a, err := ofAgent[ratedAgent](ctx, s, p, "agent_ratings", variables)
	if err != nil {
		return "", err
	}
	var dots []format.Dot
	for _, x := range a.Series.Points {
		dots = append(dots, format.Dot{At: x.Start, Value: x.Value})
	}
	drawn, err := format.Chart(dots)
	p.named(a.agentHead)
	p.Scripts = []string{"uPlot.min.js", "charts.js"}
	p.Body = agentPage{Head: a.agentHead, Agent: a, Next: nextPage(p, a.Feedback.PageInfo), Chart: drawn}
	return "agent_ratings", err
}

// changeValue is what a value was or is.
type changeValue struct {
	Text, Hex *string
	Size      int64
}

// String returns the value as text, or its bytes.
func (v *changeValue) String() string {
	if v == nil {
		return ""
	}
	return format.OrElse(v.Text, format.OrElse(v.Hex, ""))
}

// changedAgent is an agent with a page of its history.
type changedAgent struct {
	agentHead
	Metadata []struct {
		Key, Value string
		Text       *string
		Size       int64
	}
	MetadataCount int64
	History       listOf[struct {
		Kind     string
		Key      *struct{ Text, Hex *string }
		Old, New *changeValue
		At       point
	}]
	Documents struct {
		Nodes []struct {
			URI            string
			FromBlock      int64
			ToBlock        *int64
			FetchedAt      *time.Time
			Source, SHA256 *string
			Size           int64
			Kept           bool
			Reason         *string
		}
	}
}

// MoreMetadata reports whether the agent has more metadata than the page shows.
func (c changedAgent) MoreMetadata() bool { return c.MetadataCount > int64(len(c.Metadata)) }

// agentHistory shows how an agent changed.
func (s *site) agentHistory(ctx context.Context, p *page) (string, error) {
	a, err := ofAgent[changedAgent](ctx, s, p, "agent_history",
		map[string]any{"first": agentRows, "after": p.Query.Get("after")})
	p.named(a.agentHead)
	p.Body = agentPage{Head: a.agentHead, Agent: a, Next: nextPage(p, a.History.PageInfo)}
	return "agent_history", err
}

// validatedAgent is an agent with a page of its validations.
type validatedAgent struct {
	agentHead
	Series       struct{ AsOf asOf }
	LinkedAgents []struct {
		ShortID, Name string
		SameFile      bool
	}
	Manifest    *struct{ Domain string }
	Validations listOf[validation]
}

// validation is a request with its newest answer.
type validation struct {
	Validator, Contract string
	ContractTrusted     bool
	RequestHash, Status string
	Answers             int64
	Requested           point
	Answer              *struct {
		Response int
		Tag      string
		At       struct{ Time *time.Time }
	}
}

// offers is what a domain offers.
type offers struct {
	Domain, State, Tier, VerifiedTier string
	Stale                             bool
	FetchedAt                         *time.Time
	Intents                           []intent
}

// intent is one thing that a domain offers.
type intent struct {
	Name, Description string
	Method, URL       *string
	Terms             terms
}

// terms are what an intent costs.
type terms struct {
	Price *struct{ Amount, Currency, Model string }
	Ways  []struct {
		Protocol                string
		Network, Direct, Ticket *string
		Currency, Unit          *string
	}
}

// agentWork shows validations, runs and offers of an agent.
func (s *site) agentWork(ctx context.Context, p *page) (string, error) {
	a, err := listed[validatedAgent](ctx, s, p, "agent_work",
		map[string]any{"first": agentRows, "after": p.Query.Get("after")})
	if err != nil {
		return "", err
	}
	p.named(a.agentHead)
	a.AsOf = &a.Series.AsOf
	body := agentPage{Head: a.agentHead, Agent: a, Next: nextPage(p, a.Validations.PageInfo)}
	if a.Manifest != nil {
		m, err := ask[struct{ Manifest *offers }](ctx, s, p, "offers", map[string]any{"domain": a.Manifest.Domain})
		if err != nil {
			return "", fmt.Errorf("offers: %w", err)
		}
		body.Offers = m.Manifest
	}
	body.Runs = new(s.agentRuns(ctx, p))
	p.Body = body
	return "agent_work", nil
}
