package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"repute/web/failure"
	"repute/web/format"
)

// latestRows is how many agents the list of newest changes has.
const latestRows = 12

// chain is a chain in the overview.
type chain struct {
	ChainID                   int64
	Name                      string
	Agents, Feedback          int64
	Halted, Stalled, Imported bool
	LastError                 *string
	Registries                struct{ Identity, Reputation string }
	Documents                 struct{ Known, Due int64 }
	Scores                    chainScores
	Endpoints                 []struct{ Name, State string }
	AsOf                      asOf
}

// chainScores is how far the scores of a chain are.
type chainScores struct {
	Epoch, Block *int64
	WalkedAt     *time.Time
	Final, Late  bool
	Roots, Stale int64
	Coverage     struct {
		Rated, Thin int64
		Records     struct{ All, Counted int64 }
	}
}

// Hosts returns how many endpoints the chain has, however many processes ask them.
func (c chain) Hosts() int { return len(c.hosts()) }

// Working returns how many of the chain's endpoints answer. One that several processes ask works if it does for one.
func (c chain) Working() (n int) {
	for _, works := range c.hosts() {
		if works {
			n++
		}
	}
	return n
}

// hosts returns the chain's endpoints by name, and whether each answers.
func (c chain) hosts() map[string]bool {
	hosts := map[string]bool{}
	for _, e := range c.Endpoints {
		hosts[e.Name] = hosts[e.Name] || e.State == "closed"
	}
	return hosts
}

// Trouble says what is wrong with a chain and what to do next; "" when nothing is.
func (c chain) Trouble() string {
	switch {
	case c.Halted:
		return "Stopped: the chain reorganized below finality. An operator has to index it anew."
	case c.Stalled:
		return "Stalled: the head moves and nothing is stored. The log of the process says why."
	case len(c.Endpoints) > 0 && c.Working() == 0:
		return "No endpoint answers. What is stored is still shown; it is stale until one does."
	case c.AsOf.Completeness.OpenGaps > 0:
		return format.Plural(c.AsOf.Completeness.OpenGaps, "event") +
			" missing: they are searched for, and no score of this chain is verified until they are found."
	case c.Scores.Roots == 0:
		return "No roots: nobody is trusted without further evidence, so that scores say little. An operator adds some with repute roots add."
	case c.Scores.Late:
		return "Scores are late: changes wait to be scored."
	}
	return ""
}

// overview is what the first page shows.
type overview struct {
	Status struct {
		Version, Status string
		Chains          []chain
	}
	New struct{ Total total }
}

// Sums are the totals of all chains.
func (o overview) Sums() (s struct{ Agents, Ratings, Rated, Counted, Records int64 }) {
	for _, c := range o.Status.Chains {
		s.Agents += c.Agents
		s.Ratings += c.Feedback
		s.Rated += c.Scores.Coverage.Rated
		s.Records += c.Scores.Coverage.Records.All
		s.Counted += c.Scores.Coverage.Records.Counted
	}
	return s
}

// latest are the agents that changed last.
type latest struct{ Agents struct{ Nodes []agentRow } }

// overview shows the chains, totals and newest changes.
func (s *site) overview(ctx context.Context, p *page) (string, error) {
	p.Title = "Overview"
	since := time.Now().Add(-24 * time.Hour).UTC().Truncate(time.Minute)
	o, err := ask[overview](ctx, s, p, "overview", map[string]any{"since": since.Format(time.RFC3339)})
	if err != nil {
		return "", err
	}
	l, err := ask[latest](ctx, s, p, "latest", map[string]any{"first": latestRows})
	p.Body = struct {
		overview
		Latest []agentRow
		Since  string
	}{o, l.Agents.Nodes, since.Format(time.RFC3339)}
	return "overview", err
}

// latest answers GET /ui/latest: the newest changes alone, which a script asks for when the index says that something
// changed.
func (s *site) latest(c echo.Context) error {
	p := s.newPage(c)
	l, err := ask[latest](c.Request().Context(), s, p, "latest", map[string]any{"first": latestRows})
	if err != nil {
		f := failure.Of(err)
		return s.send(c, f.Status,
			[]byte(`<tr><td colspan="9">The newest changes cannot be read now. They are asked for again with the next one.</td></tr>`))
	}
	var out bytes.Buffer
	if err := s.templates["overview"].ExecuteTemplate(&out, "latest", l.Agents.Nodes); err != nil {
		return fmt.Errorf("newest changes: %w", err)
	}
	return s.send(c, http.StatusOK, out.Bytes())
}
