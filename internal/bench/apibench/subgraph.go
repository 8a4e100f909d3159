package apibench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"repute/internal/bench/harness"
)

// What the subgraph must reach for the SDK of agent0, which reads pages of a thousand agents with their files. The
// limits of walks are for Options.Agents as they are by default, 400,000.
const (
	subgraphPage = 1000
	mostPage     = 100 * time.Millisecond // each of the first ten pages
	mostSkip     = time.Second            // a page behind any number of agents
	mostWalk     = 120 * time.Second      // all pages by skip
	mostIDWalk   = 60 * time.Second       // all pages by id_gt
)

// Subgraph are the measurements of the subgraph, in milliseconds and seconds.
type Subgraph struct {
	Pages   Times   `json:"first_pages"`
	Skips   Times   `json:"skips"`
	Created Times   `json:"skips_by_creation"`
	IDs     Times   `json:"skips_by_id"`
	Active  Times   `json:"first_pages_by_activity"`
	Ratings Times   `json:"ratings_by_creation"`
	Walk    float64 `json:"walk_seconds"`
	IDWalk  float64 `json:"id_walk_seconds"`
	Series  Times   `json:"series_of_the_chain"`
}

// targets are the figures with their limits.
func (s Subgraph) targets() []harness.Target {
	skip := func(what string, t Times) harness.Target {
		return harness.AtMost("subgraph: "+what, t.Longest, harness.Millis(mostSkip), "ms")
	}
	return []harness.Target{
		harness.AtMost("subgraph: slowest of the first ten pages of 1,000 agents", s.Pages.Longest,
			harness.Millis(mostPage), "ms"),
		skip("slowest page behind any skip", s.Skips), skip("the same by createdAt", s.Created),
		skip("the same by id", s.IDs),
		skip("slowest of the first ten pages by lastActivity", s.Active),
		skip("slowest page of ratings by createdAt behind any skip", s.Ratings),
		skip("slowest series of the chain by hour or day", s.Series),
		harness.AtMost("subgraph: all agents by skip", s.Walk, mostWalk.Seconds(), "s"),
		harness.AtMost("subgraph: all agents by id_gt", s.IDWalk, mostIDWalk.Seconds(), "s"),
	}
}

// agentsQuery asks for agents as the SDK does.
const agentsQuery = `query SearchAgentsV2($where: Agent_filter, $first: Int!, $skip: Int!, $orderBy: Agent_orderBy!,
	$orderDirection: OrderDirection!) {
	agents(where: $where, first: $first, skip: $skip, orderBy: $orderBy, orderDirection: $orderDirection) {
		id chainId agentId owner operators agentURI agentURIType agentWallet createdAt updatedAt totalFeedback lastActivity
		registrationFile { id agentId name description image active x402Support supportedTrusts mcpEndpoint mcpVersion a2aEndpoint
			a2aVersion webEndpoint emailEndpoint hasOASF oasfSkills oasfDomains ens did mcpTools mcpPrompts mcpResources a2aSkills } } }`

// ratingsQuery asks for ratings as the SDK does.
const ratingsQuery = `query Feedbacks($where: Feedback_filter, $first: Int!, $skip: Int!, $orderBy: Feedback_orderBy!,
	$orderDirection: OrderDirection!) {
	feedbacks(where: $where, first: $first, skip: $skip, orderBy: $orderBy, orderDirection: $orderDirection) {
		id agent { id } clientAddress value tag1 tag2 endpoint isRevoked createdAt responses(first: 1) { id } } }`

// withFile is the condition that the SDK sends where its caller gives none.
func withFile() map[string]any { return map[string]any{"registrationFile_not": nil} }

// listing is a list that is read page by page: its query, the condition on its rows, nil for none, and its order.
type listing struct {
	query     string
	where     map[string]any
	by, order string
}

// page reads a page of a list and returns how many rows there are and the id of the last one.
func (c *conn) page(l listing, skip int) (n int, last string, err error) {
	body, err := json.Marshal(map[string]any{"query": l.query,
		"variables": map[string]any{"where": l.where, "first": subgraphPage,
			"skip": skip, "orderBy": l.by, "orderDirection": l.order}})
	if err != nil {
		return 0, "", err
	}
	var answer bytes.Buffer
	if _, err := c.exchange("POST", fmt.Sprintf("/subgraphs/%d", chainID), string(body), &answer); err != nil {
		return 0, "", err
	}
	var read struct {
		Data   map[string][]struct{ ID string }
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(answer.Bytes(), &read); err != nil {
		return 0, "", err
	}
	if len(read.Errors) > 0 {
		return 0, "", fmt.Errorf("subgraph: %s", read.Errors[0].Message)
	}
	for _, rows := range read.Data {
		if n = len(rows); n > 0 {
			last = rows[n-1].ID
		}
	}
	return n, last, nil
}

// subgraph measures pages, walks and the series of the whole chain.
func (b *bench) subgraph(ctx context.Context) (err error) {
	s := &b.m.Subgraph
	// first are the pages that users look at, deep those that a program reads that reads all.
	first, deep := func(n int) int { return n * subgraphPage }, func(n int) int { return b.o.Agents * (n + 1) / 11 }
	newest := func(by string) listing { return listing{agentsQuery, withFile(), by, "desc"} }
	for _, p := range []struct {
		times *Times
		list  listing
		skip  func(n int) int
	}{
		{&s.Pages, newest("updatedAt"), first}, {&s.Skips, newest("updatedAt"), deep},
		{&s.Created, newest("createdAt"), deep},
		{&s.IDs, listing{agentsQuery, nil, "id", "asc"}, deep}, {&s.Active, newest("lastActivity"), first},
		{&s.Ratings, listing{ratingsQuery, map[string]any{"isRevoked": false}, "createdAt", "desc"}, deep},
	} {
		all, err := each(ctx, b.address, 10, 0, func(c *conn, n int) error {
			_, _, err := c.page(p.list, p.skip(n))
			return err
		})
		if err != nil {
			return err
		}
		*p.times = timesOf(all)
	}
	if err := b.series(ctx); err != nil {
		return err
	}
	if s.Walk, err = b.walk(ctx, func(c *conn, read int, _ string) (int, string, error) {
		return c.page(newest("updatedAt"), read) // the order of the SDK
	}); err != nil {
		return err
	}
	s.IDWalk, err = b.walk(ctx, func(c *conn, _ int, last string) (int, string, error) {
		return c.page(listing{agentsQuery, map[string]any{"id_gt": last}, "id", "asc"}, 0)
	})
	return err
}

// series measures the series of the whole chain: ratings and registrations in turn, by hour and by day.
func (b *bench) series(ctx context.Context) error {
	all, err := each(ctx, b.address, 8, 0, func(c *conn, n int) error {
		list := []string{"protocolFeedbackStats_collection", "protocolAgentStats_collection"}[n%2]
		sum := []string{"feedbackCreated valueSum valueDeltaSum", "agentRegistrations"}[n%2]
		_, err := c.send("POST", fmt.Sprintf("/subgraphs/%d", chainID), fmt.Sprintf(
			`{"query":"{ %s(interval: %s, first: 1000, current: include) { timestamp %s } }"}`, list,
			[]string{"hour", "day"}[n/2%2], sum))
		return err
	})
	b.m.Subgraph.Series = timesOf(all)
	return err
}

// walk reads all pages, each with the number of agents before it and the id of the last one, and returns the seconds. A
// page that is not full is the last one. It is an error if the pages together have another number of agents: a walk
// that leaves some out would be fast.
func (b *bench) walk(ctx context.Context, next func(c *conn, read int,
	last string) (int, string, error)) (float64, error) {
	c, err := dial(ctx, b.address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	start, read, last := time.Now(), 0, ""
	for n := subgraphPage; n == subgraphPage; read += n {
		if n, last, err = next(c, read, last); err != nil {
			return 0, err
		}
	}
	if read != b.o.Agents {
		return 0, fmt.Errorf("a walk of the subgraph found %d agents, not %d", read, b.o.Agents)
	}
	return time.Since(start).Seconds(), nil
}
