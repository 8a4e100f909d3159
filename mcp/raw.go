package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
)

// Raw is a tool whose schemas and values are JSON: Do checks its input itself, and makes the whole
// result. Options.Output does not bound it: Do knows what it may leave out.
type Raw struct {
	Name        string // letters, digits, _, - and .
	Aliases     []string
	Description string
	// Input and Output are JSON Schemas of objects; Output may be nil.
	Input, Output json.RawMessage
	Meta          map[string]any // of the tool in the list, such as a price
	Effect        Effect
	Do            func(context.Context, Call) Result
}

// Call is a call of a Raw tool. What is in it comes from the caller and is not checked.
type Call struct {
	Arguments json.RawMessage // an object
	Meta      map[string]any  // _meta of the call
	Header    http.Header     // of the HTTP request; nil on other transports
}

// Result is the result of a Raw tool.
type Result struct {
	Text       string
	Structured json.RawMessage // structuredContent, an object; nil: none
	Meta       map[string]any  // _meta of the result
	Failed     bool
	Outcome    string // for the log
}

// AddRaw adds a tool. repute.ErrInvalid where its schemas are none of objects. Tools MUST be added before the first
// call, since aliases are read without a lock. An alias is not listed.
func (s *Server) AddRaw(t Raw) error {
	for field, schema := range map[string]json.RawMessage{"inputSchema": t.Input, "outputSchema": t.Output} {
		var is struct {
			Type string `json:"type"`
		}
		if schema == nil && field == "outputSchema" {
			continue
		}
		if err := json.Unmarshal(schema, &is); err != nil || is.Type != "object" {
			return repute.Invalid("tool "+t.Name+": "+field, "is no schema of an object", `one with "type": "object"`)
		}
	}
	tool := &sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: t.Input,
		Annotations: t.Effect.annotations(),
		Meta:        t.Meta}
	if t.Output != nil {
		tool.OutputSchema = t.Output
	}
	for _, alias := range t.Aliases {
		s.aliases[alias] = t.Name
	}
	s.sdk.AddTool(tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		ctx, cancel := s.bounded(ctx, r)
		defer cancel()
		start := time.Now()
		c := Call{Arguments: r.Params.Arguments, Meta: r.Params.Meta}
		if r.Extra != nil {
			c.Header = r.Extra.Header
		}
		if len(c.Arguments) == 0 || string(c.Arguments) == "null" {
			c.Arguments = json.RawMessage("{}")
		}
		out := s.run(ctx, &t, c)
		s.log.InfoContext(ctx, "tool", "name", t.Name, "outcome", out.Outcome, "bytes", len(out.Text), "ms",
			time.Since(start).Milliseconds())
		return out.result(), nil
	})
	return nil
}

// run calls a tool. A panic is a failure of the call, not the end of the process. The stack is logged; the caller reads
// that something broke.
func (s *Server) run(ctx context.Context, t *Raw, c Call) (out Result) {
	defer func() {
		if r := recover(); r != nil {
			out = s.failed(ctx, fmt.Errorf("a tool panicked: %v\n%s", r, debug.Stack()))
		}
	}()
	return t.Do(ctx, c)
}

// result returns the result in the form of the SDK.
func (r *Result) result() *sdk.CallToolResult {
	out := &sdk.CallToolResult{IsError: r.Failed, Meta: r.Meta, Content: []sdk.Content{&sdk.TextContent{Text: r.Text}}}
	if r.Structured != nil {
		out.StructuredContent = r.Structured
	}
	return out
}

// rename replaces aliases of tools in calls.
func (s *Server) rename(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if p, ok := r.GetParams().(*sdk.CallToolParamsRaw); ok && s.aliases[p.Name] != "" {
			p.Name = s.aliases[p.Name]
		}
		return next(ctx, method, r)
	}
}
