package rest

import (
	"context"
	"strconv"

	"repute/internal/httpapi"
	"repute/mcp"
)

// Caller returns the name of the caller of an MCP tool, or the error for a caller without the needed roles.
func (r *Router) Caller(ctx context.Context, needed ...httpapi.Role) (string, error) {
	text := mcp.Token(ctx)
	if text == "" {
		return "", unknownCaller("this tool needs a bearer token, and the caller sent none")
	}
	t := r.server.TokenOf(text)
	if t == nil {
		return "", unknownCaller("the bearer token is not known")
	}
	return t.Name, t.May(needed...)
}

// unknownCaller returns the error for a caller without a valid token. Callers of tools see no HTTP headers, so that
// the hint names the configuration.
func unknownCaller(detail string) error {
	b := *httpapi.ErrorOf(httpapi.ErrUnauthorized)
	b.Detail, b.Hint = detail,
		"configure the client with a bearer token of this service (one of its orchestrator.tokens): header Authorization, or REPUTE_TOKEN on stdio"
	return &b
}

// Private returns a tool that reads tasks, runs or operator actions, and that checks the role read if reads are
// private.
func Private[In, Out any](r *Router, do func(context.Context, In) (Out, error)) func(context.Context, In) (Out,
	error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		if r.privateReads {
			if _, err := r.Caller(ctx, httpapi.RoleRead); err != nil {
				return out, err
			}
		}
		return do(ctx, in)
	}
}

// Body is the answer of a route's handler without what is for HTTP alone.
func Body[B any](out *Answer[B], err error) (B, error) {
	if err != nil {
		var none B
		return none, err
	}
	return *out.Body, nil
}

// Text is a number as a route takes it: empty for 0.
func Text(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// DryRunTool is embedded in the inputs of tools that can simulate.
type DryRunTool struct {
	DryRun bool `json:"dry_run,omitempty" doc:"only say what would be done"`
}

// SlugTool names an agent.
type SlugTool struct {
	Slug string `json:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" doc:"as openfi_list_agents gives it"`
}

// PageTool selects a page of a list.
type PageTool struct {
	Limit  int    `json:"limit,omitempty" minimum:"1" maximum:"200" doc:"absent: 50"`
	Cursor string `json:"cursor,omitempty" doc:"nextCursor of the answer before"`
}

// Input returns the page in the form of the routes.
func (in *PageTool) Input() PageInput { return PageInput{httpapi.Number(Text(in.Limit)), in.Cursor} }
