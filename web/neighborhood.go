package web

import (
	"context"
	"net/url"
	"strings"

	"repute/web/failure"
	"repute/web/format"
	"repute/web/graph"
)

// neighborAgents is how many agents, or rows that name agents, a neighborhood begins with, and neighborRatings how many of
// the newest ratings of each are followed.
const (
	neighborAgents  = 30
	neighborRatings = 10
)

// neighborhood is the page of a graph.
type neighborhood struct {
	// Kind is reviewer, validator or domain, which decides the sentences of the page.
	Kind string
	// Name is an address or a domain. Back is the page about it; "" where there is none.
	Name, Back string
	Graph      *graph.Graph
	// Agents and Ratings are how many the page reads at most: see neighborAgents.
	Agents, Ratings int
	// More reports whether there are further agents or rows, and Cut how many agents have further ratings.
	More bool
	Cut  int
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

// CutAgents is Cut as templates count.
func (n *neighborhood) CutAgents() int64 { return int64(n.Cut) }

// LeftOut is how many relations of the graph are left out, as templates count.
func (n *neighborhood) LeftOut() int64 { return int64(n.Graph.Left) }

// newNeighborhood returns the page about something before any agent is added.
func newNeighborhood(kind, name, label string) *neighborhood {
	back := prefix + "/" + kind + "/" + url.PathEscape(name)
	return &neighborhood{Kind: kind, Name: name, Back: back, Agents: neighborAgents, Ratings: neighborRatings,
		Graph: graph.New(graph.Node{ID: name, Label: label, URL: back})}
}

// add adds an agent and its edge from what the graph is about. An agent may be added more than once.
func (n *neighborhood) add(a neighborAgent, relation, value, tag string) {
	to := n.Graph.Add(graph.Node{ID: a.ID, Label: format.Clean(format.OrElse(a.Name, a.ShortID), 30), Kind: graph.Agent,
		URL: prefix + "/agent/" + a.ShortID})
	n.Graph.Join(n.Graph.Nodes[0], to, relation, value, tag)
}

// follow adds the owners of agents, then their raters, and places all. It is called once, after all agents were added, so
// that where there are too many nodes the raters are left out first.
func (n *neighborhood) follow(agents []neighborAgent, owners bool) {
	seen := map[string]bool{}
	var once []neighborAgent
	for _, a := range agents {
		if !seen[a.ID] {
			seen[a.ID] = true
			once = append(once, a)
		}
	}
	for _, a := range once {
		if owners {
			n.Graph.Join(n.party(a.Owner, graph.Owner), n.Graph.Node(a.ID), "owns", "", "")
		}
		if a.Feedback.PageInfo.HasNextPage {
			n.Cut++
		}
	}
	for _, a := range once {
		for _, r := range a.Feedback.Nodes {
			n.Graph.Join(n.party(r.Client, graph.Reviewer), n.Graph.Node(a.ID), "rated", r.Decimal, r.Tag1)
		}
	}
	n.Graph.Place()
}

// party returns the node of an address.
func (n *neighborhood) party(address string, kind graph.Kind) *graph.Node {
	return n.Graph.Add(graph.Node{ID: address, Label: format.Shorten(address), Kind: kind, URL: prefix + "/reviewer/" + address})
}

// show makes the page of a neighborhood.
func (n *neighborhood) show(p *page) string {
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

// aroundReviewer returns the graph of a reviewer: its edges lead to the agents that it rated, and those of other reviewers
// to the same agents.
func aroundReviewer(r reviewerNeighbors) *neighborhood {
	n := newNeighborhood("reviewer", r.Address, format.Shorten(r.Address))
	n.More = r.Feedback.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, f := range r.Feedback.Nodes {
		n.add(f.Agent, "rated", f.Decimal, f.Tag1)
		agents = append(agents, f.Agent)
	}
	n.follow(agents, false)
	return n
}

// reviewerGraph shows the agents that a reviewer rated, and their other raters.
func (s *site) reviewerGraph(ctx context.Context, p *page) (string, error) {
	p.Title = "Neighborhood of " + format.Shorten(format.Short(p.ID))
	a, err := ask[struct{ Client reviewerNeighbors }](ctx, s, p, "neighbors",
		map[string]any{"address": p.ID, "first": neighborAgents, "ratings": neighborRatings})
	if err != nil {
		return "", err
	}
	return aroundReviewer(a.Client).show(p), nil
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

// aroundValidator returns the graph of a validator: its edges lead to the agents that it was asked about, and those of
// owners and raters to the same agents.
func aroundValidator(v validatorNeighbors) *neighborhood {
	n := newNeighborhood("validator", v.Address, format.Shorten(v.Address))
	n.More = v.Validations.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, r := range v.Validations.Nodes {
		if r.Answer == nil {
			n.add(r.Agent, "was asked about", "", "")
		} else {
			n.add(r.Agent, "validated", format.Count(int64(r.Answer.Response))+" of 100", r.Answer.Tag)
		}
		agents = append(agents, r.Agent)
	}
	n.follow(agents, true)
	return n
}

// validatorGraph shows the agents that a validator was asked about, their owners and their raters.
func (s *site) validatorGraph(ctx context.Context, p *page) (string, error) {
	p.Title = "Neighborhood of " + format.Shorten(format.Short(p.ID))
	a, err := ask[struct{ Validator validatorNeighbors }](ctx, s, p, "validator_neighbors",
		map[string]any{"address": p.ID, "first": neighborAgents, "ratings": neighborRatings})
	if err != nil {
		return "", err
	}
	return aroundValidator(a.Validator).show(p), nil
}

// domainNeighbors are the agents whose documents have an endpoint on a domain or below it, and the domain as the index of
// manifests knows it.
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

// proven reports whether a domain, or one below it, confirms an agent.
func proven(domain string, proofs []struct{ Domain, Verdict string }) bool {
	for _, p := range proofs {
		if p.Verdict == "proven" && (p.Domain == domain || strings.HasSuffix(p.Domain, "."+domain)) {
			return true
		}
	}
	return false
}

// aroundDomain returns the graph of a domain: its edges lead to the agents whose services it serves, and those of owners
// and raters to the same agents.
func aroundDomain(domain string, d domainNeighbors) *neighborhood {
	n := newNeighborhood("domain", domain, format.Clean(domain, 30))
	if len(d.Manifests.Nodes) == 0 || d.Manifests.Nodes[0].Domain != domain {
		n.Back = ""
		n.Graph.Nodes[0].URL = prefix + "/explore?" + url.Values{"host": {domain}}.Encode()
	}
	n.More = d.Agents.PageInfo.HasNextPage
	var agents []neighborAgent
	for _, a := range d.Agents.Nodes {
		value := "not confirmed"
		if proven(domain, a.DomainProofs) {
			value = "confirmed"
		}
		n.add(a.neighborAgent, "serves", value, "")
		agents = append(agents, a.neighborAgent)
	}
	n.follow(agents, true)
	return n
}

// domainGraph shows the agents whose services a domain serves, their owners and their raters.
func (s *site) domainGraph(ctx context.Context, p *page) (string, error) {
	domain := strings.TrimSuffix(strings.ToLower(p.ID), ".")
	p.Title = "Neighborhood of " + format.Short(domain)
	if domain == "" { // which would select the agents of all domains
		return "", failure.ErrNowhere
	}
	d, err := ask[domainNeighbors](ctx, s, p, "domain_neighbors",
		map[string]any{"domain": domain, "first": neighborAgents, "ratings": neighborRatings})
	if err != nil {
		return "", err
	}
	return aroundDomain(domain, d).show(p), nil
}
