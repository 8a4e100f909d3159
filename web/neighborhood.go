package web

import (
	"context"
	"net/url"
	"strings"

	"repute/internal/httprule"
	"repute/web/failure"
	"repute/web/format"
	"repute/web/graph"
)

// Limits of a neighborhood, besides graph.MaxNodes.
const (
	maxStartRows       = 30 // ratings, requests or agents that are read first
	maxRatingsPerAgent = 10 // of the newest ratings of each agent
)

// neighborhood is the page of a graph.
type neighborhood struct {
	// Kind is reviewer, validator or domain, which decides the sentences of the page.
	Kind string
	// Name is an address or a domain. Back is the page about it; "" where there is none.
	Name, Back string
	Graph      *graph.Graph
	// MaxRows and MaxRatings are maxStartRows and maxRatingsPerAgent.
	MaxRows, MaxRatings int
	// HasMore reports whether there are further rows to begin with.
	HasMore bool
	// Unfollowed is how many agents have further ratings.
	Unfollowed int64
}

// neighborAgent is an agent of a neighborhood with its newest ratings.
type neighborAgent struct {
	ID, ShortID string
	Name        *string
	Owner       string
	Feedback    struct {
		Nodes    []struct{ Client, Decimal, Tag1 string }
		PageInfo struct{ HasNextPage bool }
	}
}

// newNeighborhood returns the page about something before any agent is added.
func newNeighborhood(kind, name, label string) *neighborhood {
	back := prefix + "/" + kind + "/" + url.PathEscape(name)
	return &neighborhood{Kind: kind, Name: name, Back: back, MaxRows: maxStartRows, MaxRatings: maxRatingsPerAgent,
		Graph: graph.New(graph.Node{ID: name, Label: label, URL: back})}
}

// add adds an agent and its edge from what the graph is about. An agent may be added more than once.
func (n *neighborhood) add(a neighborAgent, relation, value, tag string) {
	to := n.Graph.Add(graph.Node{ID: a.ID, Label: format.Clean(format.OrElse(a.Name, a.ShortID), 30), Kind: graph.Agent,
		URL: prefix + "/agent/" + a.ShortID})
	n.Graph.Join(n.Graph.Nodes[0], to, relation, value, tag)
}

// finish adds the owners of agents, then their raters, and places all nodes. It MUST be called once, after all agents
// were added: a graph that is full leaves out raters first.
func (n *neighborhood) finish(agents []neighborAgent, owners bool) {
	seen := map[string]bool{}
	var distinct []neighborAgent
	for _, a := range agents {
		if !seen[a.ID] {
			seen[a.ID] = true
			distinct = append(distinct, a)
		}
	}
	for _, a := range distinct {
		if owners {
			n.Graph.Join(n.addressNode(a.Owner, graph.Owner), n.Graph.Node(a.ID), "owns", "", "")
		}
		if a.Feedback.PageInfo.HasNextPage {
			n.Unfollowed++
		}
	}
	for _, a := range distinct {
		for _, r := range a.Feedback.Nodes {
			n.Graph.Join(n.addressNode(r.Client, graph.Reviewer), n.Graph.Node(a.ID), "rated", r.Decimal, r.Tag1)
		}
	}
	n.Graph.Place()
}

// addressNode returns the node of an address, nil where the graph is full.
func (n *neighborhood) addressNode(address string, kind graph.Kind) *graph.Node {
	return n.Graph.Add(graph.Node{ID: address, Label: format.Shorten(address), Kind: kind,
		URL: prefix + "/reviewer/" + address})
}

// render makes the page of a neighborhood and returns the name of its template.
func (n *neighborhood) render(p *page) string {
	p.Scripts = []string{"graphology.min.js", "sigma.min.js", "graph.js"}
	p.Body = n
	return "graph"
}

// reviewerNeighbors are the agents that a reviewer rated last, each with its newest ratings.
type reviewerNeighbors struct {
	Address  string
	Feedback struct {
		Nodes []struct {
			Decimal, Tag1 string
			Agent         neighborAgent
		}
		PageInfo struct{ HasNextPage bool }
	}
}

// aroundReviewer returns the graph of a reviewer, the agents that it rated, and the other clients that rated these
// agents.
func aroundReviewer(r reviewerNeighbors) *neighborhood {
	n := newNeighborhood("reviewer", r.Address, format.Shorten(r.Address))
	n.HasMore = r.Feedback.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, f := range r.Feedback.Nodes {
		n.add(f.Agent, "rated", f.Decimal, f.Tag1)
		agents = append(agents, f.Agent)
	}
	n.finish(agents, false)
	return n
}

// reviewerGraph shows the agents that a reviewer rated, and their other raters.
func (s *site) reviewerGraph(ctx context.Context, p *page) (string, error) {
	p.Title = "Neighborhood of " + format.Shorten(format.Short(p.ID))
	a, err := ask[struct{ Client reviewerNeighbors }](ctx, s, p, "neighbors",
		map[string]any{"address": p.ID, "first": maxStartRows, "ratings": maxRatingsPerAgent})
	if err != nil {
		return "", err
	}
	return aroundReviewer(a.Client).render(p), nil
}

// validatorNeighbors are the agents that a validator was asked about last.
type validatorNeighbors struct {
	Address     string
	Validations struct {
		Nodes []struct {
			Answer *struct {
				Response int
				Tag      string
			}
			Agent neighborAgent
		}
		PageInfo struct{ HasNextPage bool }
	}
}

// aroundValidator returns the graph of a validator, the agents that it was asked about, and their owners and raters.
func aroundValidator(v validatorNeighbors) *neighborhood {
	n := newNeighborhood("validator", v.Address, format.Shorten(v.Address))
	n.HasMore = v.Validations.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, r := range v.Validations.Nodes {
		if r.Answer == nil {
			n.add(r.Agent, "was asked about", "", "")
		} else {
			n.add(r.Agent, "validated", format.Count(int64(r.Answer.Response))+" of 100", r.Answer.Tag)
		}
		agents = append(agents, r.Agent)
	}
	n.finish(agents, true)
	return n
}

// validatorGraph shows the agents that a validator was asked about, their owners and their raters.
func (s *site) validatorGraph(ctx context.Context, p *page) (string, error) {
	p.Title = "Neighborhood of " + format.Shorten(format.Short(p.ID))
	a, err := ask[struct{ Validator validatorNeighbors }](ctx, s, p, "validator_neighbors",
		map[string]any{"address": p.ID, "first": maxStartRows, "ratings": maxRatingsPerAgent})
	if err != nil {
		return "", err
	}
	return aroundValidator(a.Validator).render(p), nil
}

// domainNeighbors are the agents whose documents have an endpoint on a domain or below it, and the domain as the index
// of manifests knows it.
type domainNeighbors struct {
	Manifests struct{ Nodes []struct{ Domain string } }
	Agents    struct {
		Nodes []struct {
			neighborAgent
			DomainProofs []struct{ Domain, Verdict string }
		}
		PageInfo struct{ HasNextPage bool }
	}
}

// confirmed says whether a domain confirms an agent, or which one below it does: others may own that.
func confirmed(domain string, proofs []struct{ Domain, Verdict string }) string {
	said := "not confirmed"
	for _, p := range proofs {
		switch {
		case p.Verdict != "proven":
		case p.Domain == domain:
			return "confirmed"
		case strings.HasSuffix(p.Domain, "."+domain):
			said = "confirmed by " + p.Domain
		}
	}
	return said
}

// aroundDomain returns the graph of a domain, the agents whose services it serves, and their owners and raters.
func aroundDomain(domain string, d domainNeighbors) *neighborhood {
	n := newNeighborhood("domain", domain, format.Clean(domain, 30))
	// The list of manifests begins at a domain; without a manifest of its own the domain has no page.
	if len(d.Manifests.Nodes) == 0 || d.Manifests.Nodes[0].Domain != domain {
		n.Back = ""
		n.Graph.Nodes[0].URL = prefix + "/explore?" + url.Values{"host": {domain}}.Encode()
	}
	n.HasMore = d.Agents.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, a := range d.Agents.Nodes {
		n.add(a.neighborAgent, "serves", confirmed(domain, a.DomainProofs), "")
		agents = append(agents, a.neighborAgent)
	}
	n.finish(agents, true)
	return n
}

// domainGraph shows the agents whose services a domain serves, their owners and their raters.
func (s *site) domainGraph(ctx context.Context, p *page) (string, error) {
	domain := httprule.Host(p.ID)
	p.Title = "Neighborhood of " + format.Short(domain)
	if domain == "" { // which would select the agents of all domains
		return "", failure.ErrNowhere
	}
	d, err := ask[domainNeighbors](ctx, s, p, "domain_neighbors",
		map[string]any{"domain": domain, "first": maxStartRows, "ratings": maxRatingsPerAgent})
	if err != nil {
		return "", err
	}
	return aroundDomain(domain, d).render(p), nil
}
