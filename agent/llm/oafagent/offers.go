package oafagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"repute"
	"repute/agent/handler"
	"repute/agent/llm"
)

// Bounds of the tools of a server.
const (
	maxTools       = 128
	maxDescription = 1024 // bytes of a tool's description that the model sees
	maxSchema      = 16 << 10
	maxToolName    = 128
	// maxListing bounds what is journaled of all tools of a server, in bytes. A call of the ledger takes 2 MiB.
	maxListing = 512 << 10
)

// listing is what a server offers, in the form that is journaled.
type listing struct {
	Tools   []offered `json:"tools"`
	Refused []refused `json:"refused,omitempty"` // selected tools that the model cannot be given
	// Cut says that the server has more tools than are taken.
	Cut bool `json:"cut,omitempty"`
}

// offered is a tool as a server describes it.
type offered struct {
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	// ReadOnlyHint is the server's own claim, which nobody verifies. With it a tool is offered under
	// permissions.read_only and may use the paths of permissions.read. It never skips a confirmation.
	ReadOnlyHint bool `json:"readOnlyHint,omitempty"`
}

// refused is a tool that is not offered, and why.
type refused struct {
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

// serverTools are the selected tools of all servers, as far as the agent's file still allows them. A server that
// fails has no tools, and the model is not told; one that the agent's file requires fails the conversation.
func (r *run) serverTools(ctx context.Context) (out []tool, err error) {
	for _, s := range r.servers {
		list, err := r.offers(ctx, s)
		if err != nil {
			if r.required(s.def) || r.s.Ledger.Ends(ctx, err) || ctx.Err() != nil {
				return nil, fmt.Errorf("MCP server %.80s: %w", s.def.Name, err)
			}
			r.o.Log.WarnContext(ctx, "an MCP server is left out", "server", s.def.Name, "error", err)
			continue
		}
		if list.Cut {
			r.o.Log.WarnContext(ctx, "an MCP server has more tools than are taken", "server", s.def.Name, "most",
				maxTools)
		}
		for _, t := range list.Refused {
			r.o.Log.WarnContext(ctx, "a tool of an MCP server is left out", "server", s.def.Name, "tool", t.Tool, "why",
				t.Why)
		}
		for _, t := range list.Tools {
			if s.allows(t, r.reads(s, t.Tool)) { // the agent's file can have changed since the list was journaled
				out = append(out, tool{r.serverTool(s, t), s.names(t.Tool), r.granted(s, t.Tool)})
			}
		}
	}
	return out, nil
}

// offers asks a server for its tools. It is a call of the ledger, so that a resumed conversation has the same tools.
func (r *run) offers(ctx context.Context, s *server) (out listing, err error) {
	use := llm.ToolUse{Name: "mcp_tools", Input: mustJSON(map[string]string{"server": s.def.Name})}
	text, err := r.s.Ledger.Tool(ctx, use, func(ctx context.Context) (string, error) {
		list, err := s.list(ctx, func(tool string) bool { return r.reads(s, tool) })
		return string(mustJSON(list)), err
	})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal([]byte(text), &out)
}

// reads reports whether the agent's file says that a tool of a server changes nothing.
func (a *Agent) reads(s *server, tool string) bool {
	return listed(a.settings.ReadOnlyTools, a.granted(s, tool))
}

// repeatable reports whether the agent's file says that a call of a tool may be made twice.
func (a *Agent) repeatable(s *server, tool string) bool {
	return a.reads(s, tool) || listed(a.settings.IdempotentTools, a.granted(s, tool))
}

// mustJSON returns a value of this package as JSON. All types of the package can be encoded; an encoding error
// would give null.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// serverTool is a tool of a server for the model.
func (r *run) serverTool(s *server, t offered) llm.Tool {
	reads, once := r.reads(s, t.Tool), !r.repeatable(s, t.Tool)
	made := llm.Tool{Once: once,
		ToolDef: llm.ToolDef{Name: s.toolName(t.Tool), Description: t.Description, Schema: t.Schema},
		Run: func(ctx context.Context, input json.RawMessage) (string, error) {
			if err := s.permits(input, reads || t.ReadOnlyHint); err != nil {
				return "", err
			}
			return s.call(ctx, t.Tool, input, once)
		}}
	if reads {
		return made
	}
	return r.confirm(made)
}

// list asks a server for its tools and keeps those that the agent's file selects.
func (s *server) list(ctx context.Context, reads func(tool string) bool) (out listing, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if err := wait(ctx, s.lists); err != nil {
		return out, err
	}
	session, done, err := s.connect.Session(ctx)
	if err != nil {
		return out, s.failure("it cannot be reached", err)
	}
	defer done()
	out.Tools = []offered{}
	seen, size := 0, 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return listing{}, s.failure("its tools cannot be listed", err)
		}
		if seen++; seen > 10*maxTools || len(out.Tools)+len(out.Refused) >= maxTools {
			out.Cut = true
			break
		}
		hint := t.Annotations != nil && t.Annotations.ReadOnlyHint
		if !s.allows(offered{Tool: t.Name, ReadOnlyHint: hint}, reads(t.Name)) {
			continue
		}
		made, err := s.offer(t, hint)
		if more := journaledSize(made); err == nil && size+more > maxListing {
			err = repute.Invalid("tools", fmt.Sprintf("have more than %d bytes", maxListing), "fewer tools")
		} else {
			size += more
		}
		if err != nil {
			out.Refused = append(out.Refused, refused{fmt.Sprintf("%.100s", s.hidden.Replace(t.Name)),
				fmt.Sprintf("%.200s", s.hidden.Replace(err.Error()))})
			continue
		}
		out.Tools = append(out.Tools, made)
	}
	slices.SortFunc(out.Tools, func(a, b offered) int { return strings.Compare(a.Tool, b.Tool) })
	return out, nil
}

// offer is a tool of the server without values of the environment. The error says why the model cannot be given it.
func (s *server) offer(t *sdk.Tool, readOnly bool) (out offered, err error) {
	raw, err := toolSchema(t.InputSchema)
	switch {
	case err != nil:
		return out, err
	case len(t.Name) > maxToolName:
		return out, repute.Invalid("name", "is too long", fmt.Sprintf("at most %d bytes", maxToolName))
	case s.hidden.Replace(t.Name) != t.Name:
		return out, repute.Invalid("name", "has a value of the environment", "a name of its own")
	}
	text := cmp.Or(s.def.Selection.Describe(t.Name), s.hidden.Replace(t.Description))
	return offered{t.Name, cleaned(text), json.RawMessage(s.hidden.Replace(string(raw))), readOnly}, nil
}

// journaledSize is the size of a tool in the journal, which has the list as a text: an escape in the list is one again
// there.
func journaledSize(t offered) int { return len(mustJSON(string(mustJSON(t)))) }

// allows reports whether the agent's file selects a tool and permits what the tool does. reads is what the agent's file
// says of it.
func (s *server) allows(t offered, reads bool) bool {
	return s.def.Selection.Allows(t.Tool) && (t.ReadOnlyHint || reads || !s.def.Permissions.ReadOnly)
}

// cleaned is a description that others wrote: one short line without control characters, so that it cannot
// look like a part of the prompt.
func cleaned(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if len(text) > maxDescription {
		text = strings.ToValidUTF8(text[:maxDescription], "") + "…"
	}
	return text
}

// call calls a tool of the server. Values of the environment are not in what it returns. once says that the tool
// may have an effect each time that it is called.
func (s *server) call(ctx context.Context, tool string, input json.RawMessage, once bool) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := wait(ctx, s.rate); err != nil {
		return "", err
	}
	session, done, err := s.connect.Session(ctx)
	if err != nil {
		return "", s.failure("the MCP server cannot be reached", err)
	}
	defer done()
	result, err := handler.CallTool(ctx, s.connect, session, &sdk.CallToolParams{Name: tool, Arguments: input})
	switch {
	case err != nil && once:
		return "", fmt.Errorf("%w: %w", llm.ErrUncertain, s.failure("the MCP server gave no result", err))
	case err != nil:
		return "", s.failure("the MCP server did not run the tool", err)
	}
	text := s.hidden.Replace(handler.Text(result))
	if result.IsError {
		return "", fmt.Errorf("the tool failed: %.2000s", text)
	}
	if text == "" && result.StructuredContent != nil {
		text = s.hidden.Replace(string(mustJSON(result.StructuredContent)))
	}
	return text, nil
}
