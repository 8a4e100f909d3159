package oaf

import (
	"context"
	"errors"
	"slices"

	"repute"
	"repute/manifest/oaf/problem"
)

// ToolLister asks an MCP server for the names of its tools.
type ToolLister interface {
	ListTools(ctx context.Context, s Server) ([]string, error)
}

// CheckTools asks the servers of an agent for their tools, and reports selected tools that they do not have. A server
// that does not answer is reported as not asked. The caller bounds the time by ctx.
func CheckTools(ctx context.Context, a *Agent, from ToolLister, profile problem.Profile) []problem.Problem {
	list := &problem.List{Profile: profile}
	for _, s := range a.Servers {
		at := problem.Place{File: s.Dir}
		if len(s.Selection.Tools) == 0 {
			continue
		}
		tools, err := from.ListTools(ctx, s)
		if err != nil {
			notAsked(list, at, err)
			continue
		}
		for _, t := range s.Selection.Tools {
			if !t.Enabled || slices.ContainsFunc(tools, func(name string) bool { return matches(t.Name, name) }) {
				continue
			}
			code := problem.CodeToolUnknown
			if t.Required {
				code = problem.CodeToolRequired
			}
			list.Add(code, t.at, "the server has no tool %.80q", t.Name)
		}
	}
	return list.Problems()
}

// notAsked reports a server that could not be asked. An error of the input says what the caller could do.
func notAsked(list *problem.List, at problem.Place, err error) {
	var wrong *repute.InputError
	if errors.As(err, &wrong) {
		list.Suggest(problem.CodeNotAsked, at, wrong.Hint, "%s: %.200s", wrong.Field, wrong.Reason)
		return
	}
	list.Add(problem.CodeNotAsked, at, "%.200s", err)
}
