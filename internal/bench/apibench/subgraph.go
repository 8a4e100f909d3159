package apibench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"repute/internal/bench/harness"
)

// What the subgraph must reach for the SDK of agent0, which reads pages of a thousand agents with their files.
const (
	subgraphPage = 1000
	mostPage     = 100 * time.Millisecond // each of the first ten pages
	mostSkip     = time.Second            // a page behind any number of agents
	mostWalk     = 120 * time.Second      // all pages by skip
	mostIDWalk   = 60 * time.Second       // all pages by id_gt
)

// Subgraph are the measurements of the subgraph, in milliseconds and seconds.
type Subgraph struct {
	Pages  Times   `json:"first_pages"`
	Skips  Times   `json:"skips"`
	Walk   float64 `json:"walk_seconds"`
	IDWalk float64 `json:"id_walk_seconds"`
	Days   Times   `json:"days_of_the_chain"`
}

// targets are the figures with their limits.
func (s Subgraph) targets() []harness.Target {
	return []harness.Target{
		harness.AtMost("subgraph: slowest of the first ten pages of 1,000 agents", s.Pages.Longest, float64(mostPage.Milliseconds()), "ms"),
		harness.AtMost("subgraph: slowest page behind any skip", s.Skips.Longest, float64(mostSkip.Milliseconds()), "ms"),
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

// agents reads a page of agents and returns how many there are and the id of the last one.
func (c *conn) agents(where map[string]any, skip int, order, direction string) (n int, last string, err error) {
	body, err := json.Marshal(map[string]any{"query": agentsQuery, "variables": map[string]any{"where": where, "first": subgraphPage,
		"skip": skip, "orderBy": order, "orderDirection": direction}})
	if err != nil {
		return 0, "", err
	}
	var answer bytes.Buffer
	if _, err := c.exchange("POST", fmt.Sprintf("/subgraphs/%d", chainID), string(body), &answer); err != nil {
		return 0, "", err
	}
	var read struct {
		Data   struct{ Agents []struct{ ID string } }
		Errors []struct{ Message string }
	}
	if err := json.Unmarshal(answer.Bytes(), &read); err != nil {
		return 0, "", err
	}
	if len(read.Errors) > 0 {
		return 0, "", fmt.Errorf("subgraph: %s", read.Errors[0].Message)
	}
	if n = len(read.Data.Agents); n > 0 {
		last = read.Data.Agents[n-1].ID
	}
	return n, last, nil
}

// subgraph measures pages, walks and the series of the whole chain.
func (b *bench) subgraph(ctx context.Context) (err error) {
	page := func(skip func(n int) int) func(*conn, int) error {
		return func(c *conn, n int) error {
			_, _, err := c.agents(nil, skip(n), "updatedAt", "desc")
			return err
		}
	}
	pages, err := each(ctx, b.address, 10, 0, page(func(n int) int { return n * subgraphPage }))
	if err != nil {
		return err
	}
	skips, err := each(ctx, b.address, 10, 0, page(func(n int) int { return b.o.Agents * (n + 1) / 11 }))
	if err != nil {
		return err
	}
	days, err := each(ctx, b.address, 3, 0, func(c *conn, _ int) error {
		_, err := c.send("POST", fmt.Sprintf("/subgraphs/%d", chainID), `{"query":"{ protocolFeedbackStats_collection(interval: day, first: 1000) { timestamp feedbackCreated valueSum } }"}`)
		return err
	})
	b.m.Subgraph.Pages, b.m.Subgraph.Skips, b.m.Subgraph.Days = timesOf(pages), timesOf(skips), timesOf(days)
	if err != nil {
		return err
	}
	if b.m.Subgraph.Walk, err = b.walk(ctx, func(c *conn, read int, _ string) (int, string, error) {
		return c.agents(nil, read, "updatedAt", "desc") // the order of the SDK
	}); err != nil {
		return err
	}
	b.m.Subgraph.IDWalk, err = b.walk(ctx, func(c *conn, _ int, last string) (int, string, error) {
		return c.agents(map[string]any{"id_gt": last}, 0, "id", "asc")
	})
	return err
}

// walk reads all pages, each with the number of agents before it and the id of the last one, and returns the seconds.
func (b *bench) walk(ctx context.Context, next func(c *conn, read int, last string) (int, string, error)) (float64, error) {
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
