package oaf

import (
	"context"
	"path"
	"slices"

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
			list.Add(problem.CodeNotAsked, at, "%.200s", err)
			continue
		}
		at.File = path.Join(s.Dir, SelectionName)
		for _, t := range s.Selection.Tools {
			if !t.Enabled || slices.ContainsFunc(tools, func(name string) bool { return matches(t.Name, name) }) {
				continue
			}
			at.Line = t.line
			code := problem.CodeToolUnknown
			if t.Required {
				code = problem.CodeToolRequired
			}
			list.Add(code, at, "the server has no tool %.80q", t.Name)
		}
	}
	return list.Problems()
}
