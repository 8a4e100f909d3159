package oafagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"repute"
	"repute/agent/handler"
	"repute/agent/llm"
	"repute/manifest/oaf"
)

// separator is between the server and the tool in the names that the model sees.
const separator = "__"

// Bounds of MCP servers.
const (
	maxTools       = 128
	maxDescription = 1024 // bytes of a tool's description that the model sees
	maxSchema      = 16 << 10
	maxCallTime    = 5 * time.Minute
	connectTime    = 15 * time.Second
	maxAnswer      = 8 << 20 // bytes on the wire
)

// server is an MCP server of an agent.
type server struct {
	def     *oaf.Server
	name    string // as the model sees it
	connect handler.Connector
	program *handler.MCPProgram // nil for a server over HTTP
	rate    *rate.Limiter       // nil for no limit
	timeout time.Duration
}

// newServer prepares a server. Nothing is started or connected yet.
func newServer(def *oaf.Server, o *Options) (*server, error) {
	s := &server{def: def, name: safeName(def.Name), timeout: callTime}
	if def.Connection.Timeout > 0 {
		s.timeout = min(time.Duration(def.Connection.Timeout*float64(time.Second)), maxCallTime)
	}
	if l := def.RateLimit; l.PerMinute > 0 {
		s.rate = rate.NewLimiter(rate.Limit(l.PerMinute/60), max(l.Burst, 1))
	}
	var err error
	switch def.Connection.Type {
	case oaf.TransportStdio:
		s.program, err = program(def, o)
		s.connect = s.program
	case oaf.TransportHTTP, oaf.TransportSSE:
		s.connect, err = endpoint(def, o)
	default:
		err = repute.Invalid("connection.type", fmt.Sprintf("%.40q is no transport", def.Connection.Type),
			"stdio, http or sse")
	}
	return s, err
}

// program is a server that this process starts.
func program(def *oaf.Server, o *Options) (*handler.MCPProgram, error) {
	c := &def.Connection
	if !o.Programs {
		return nil, repute.Invalid("connection.type", "is stdio, and programs of this agent are not allowed",
			"allow programs, or a server over HTTP")
	}
	path, err := exec.LookPath(c.Command)
	if err != nil {
		return nil, repute.Invalid("connection.command", fmt.Sprintf("%.80q is not installed", c.Command), "a program")
	}
	p := &handler.MCPProgram{Path: path, Args: c.Args, Env: []string{"PATH=" + o.Getenv("PATH"),
		"HOME=" + o.Getenv("HOME")}}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		v, err := o.expand("connection.env."+name, c.Env[name])
		if err != nil {
			return nil, err
		}
		p.Env = append(p.Env, name+"="+v)
	}
	return p, nil
}

// endpoint is a server over HTTP.
func endpoint(def *oaf.Server, o *Options) (*handler.MCPEndpoint, error) {
	c := &def.Connection
	url, err := o.expand("connection.url", c.URL)
	if err != nil {
		return nil, err
	}
	e := &handler.MCPEndpoint{URL: url, Client: o.Client, Header: http.Header{}, MaxAnswer: maxAnswer / 2,
		SSE: c.Type == oaf.TransportSSE}
	for name, value := range c.Headers {
		v, err := o.expand("connection.headers."+name, value)
		if err != nil {
			return nil, err
		}
		e.Header.Set(name, v)
	}
	if def.Auth.Token == "" {
		return e, nil
	}
	if _, ok := def.Auth.TokenVar(); !ok {
		return nil, repute.Invalid("authentication.token", "is a secret in the open", "${NAME} of the environment")
	}
	token, err := o.expand("authentication.token", def.Auth.Token)
	if err != nil {
		return nil, err
	}
	if def.Auth.Type == "bearer" || def.Auth.Type == "oauth" || def.Auth.Header == "" && def.Auth.Type != "api-key" {
		token = "Bearer " + token
	}
	e.Header.Set(cmp.Or(def.Auth.Header, map[bool]string{true: "X-Api-Key",
		false: "Authorization"}[def.Auth.Type == "api-key"]), token)
	return e, nil
}

// expand replaces ${NAME} by variables of the environment that the operator allows. The error never has a value.
func (o *Options) expand(field, text string) (string, error) {
	var wrong error
	variables := regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	out := variables.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v := o.Getenv(name)
		if !slices.Contains(o.Env, name) || v == "" {
			wrong = repute.Invalid(field, fmt.Sprintf("names the variable %.80s, which is not allowed or is empty", name),
				"allow the agent the variable (env) and set it")
		}
		return v
	})
	if wrong != nil {
		return "", wrong
	}
	return out, nil
}

// close ends the program of a server; one over HTTP has nothing to end.
func (s *server) close() {
	if s.program != nil {
		_ = s.program.Close() // its exit status tells nothing at the end
	}
}

// notes say what of the server's configuration only the server can enforce.
func (s *server) notes() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(s.def.Permissions.Extra)) {
		out = append(out, fmt.Sprintf("MCP server %.80s: permission %.80q is left to the server", s.def.Name, name))
	}
	if s.def.Permissions.MaxFileSize > 0 {
		out = append(out, fmt.Sprintf("MCP server %.80s: the largest size of a file is left to the server", s.def.Name))
	}
	return out
}

// safeName makes a name that all providers accept.
func safeName(name string) string {
	out := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return out[:min(len(out), 64)]
}

// toolName is the name of a tool of the server as the model sees it.
func (s *server) toolName(tool string) string { return safeName(s.name + separator + tool) }

// offered is a tool as a server describes it, in the form that is journaled.
type offered struct {
	Tool        string          `json:"tool"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	ReadOnly    bool            `json:"readOnly,omitempty"`
}

// serverTools are the selected tools of all servers. The list of a server is a call of the ledger, so that a resumed
// conversation has the same tools, as far as the agent's file still allows them. A server that fails has no tools, and
// the model is not told; one that the agent's file requires fails the conversation.
func (r *run) serverTools(ctx context.Context) (out []llm.Tool, err error) {
	for _, s := range r.servers {
		text, err := r.s.Ledger.Tool(ctx, "mcp_tools", mustJSON(map[string]string{"server": s.def.Name}),
			func(ctx context.Context) (string, error) {
				list, err := s.list(ctx)
				return string(mustJSON(list)), err
			})
		if err != nil {
			if r.required(s.def) || r.s.Ledger.Ends(ctx, err) {
				return nil, fmt.Errorf("MCP server %.80s: %w", s.def.Name, err)
			}
			r.o.Log.WarnContext(ctx, "an MCP server is left out", "server", s.def.Name, "error", err)
			continue
		}
		var list []offered
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		for _, t := range list {
			if s.allows(t) && !r.denies(s, t.Tool) { // the agent's file can have changed since the list was journaled
				out = append(out, r.serverTool(s, t))
			}
		}
	}
	return out, nil
}

// mustJSON returns a value of this package as JSON. All types of the package can be encoded; an encoding error would give
// null.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// serverTool is a tool of a server for the model.
func (r *run) serverTool(s *server, t offered) llm.Tool {
	tool := llm.Tool{ToolDef: llm.ToolDef{Name: s.toolName(t.Tool), Description: t.Description, Schema: t.Schema},
		Run: func(ctx context.Context, input json.RawMessage) (string, error) {
			if r.denies(s, t.Tool) {
				return "", repute.Invalid("tool", fmt.Sprintf("%.80q is denied by the agent's file", t.Tool), "another tool")
			}
			return s.call(ctx, t, input)
		}}
	if t.ReadOnly {
		return tool
	}
	return r.confirm(tool)
}

// list asks a server for its tools and keeps those that the agent's file selects.
func (s *server) list(ctx context.Context) ([]offered, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	session, done, err := s.connect.Session(ctx)
	if err != nil {
		return nil, fmt.Errorf("it cannot be reached: %.200s: %w", err.Error(), repute.ErrUnavailable)
	}
	defer done()
	out, seen := []offered{}, 0
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("its tools cannot be listed: %.200s: %w", err.Error(), repute.ErrUnavailable)
		}
		if seen++; seen > 10*maxTools || len(out) >= maxTools {
			break
		}
		if o, ok := s.offer(t); ok {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b offered) int { return strings.Compare(a.Tool, b.Tool) })
	return out, nil
}

// offer returns a tool in the form for the model. ok is false where the agent's file does not allow it.
func (s *server) offer(t *sdk.Tool) (o offered, ok bool) {
	readOnly := t.Annotations != nil && t.Annotations.ReadOnlyHint
	if !s.allows(offered{Tool: t.Name, ReadOnly: readOnly}) {
		return o, false
	}
	raw, err := json.Marshal(t.InputSchema)
	var object map[string]json.RawMessage
	if err != nil || len(raw) > maxSchema || json.Unmarshal(raw, &object) != nil || object == nil {
		return o, false
	}
	text := cmp.Or(s.def.Selection.Describe(t.Name), t.Description)
	return offered{Tool: t.Name, Description: cleaned(text), Schema: raw, ReadOnly: readOnly}, true
}

// allows reports whether the agent's file selects a tool and permits what the tool does.
func (s *server) allows(t offered) bool {
	return s.def.Selection.Allows(t.Tool) && (t.ReadOnly || !s.def.Permissions.ReadOnly)
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

// call calls a tool of the server.
func (s *server) call(ctx context.Context, t offered, input json.RawMessage) (string, error) {
	if err := s.permits(t, input); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.rate != nil {
		if err := s.rate.Wait(ctx); err != nil {
			return "", fmt.Errorf("the rate limit of the server allows no call now: %w", repute.ErrUnavailable)
		}
	}
	session, done, err := s.connect.Session(ctx)
	if err != nil {
		return "", fmt.Errorf("the MCP server cannot be reached: %.200s: %w", err.Error(), repute.ErrUnavailable)
	}
	defer done()
	result, err := handler.CallTool(ctx, s.connect, session, &sdk.CallToolParams{Name: t.Tool, Arguments: input})
	if err != nil {
		return "", fmt.Errorf("the MCP server did not run the tool: %.200s: %w", err.Error(), repute.ErrUnavailable)
	}
	text := handler.Text(result)
	if result.IsError {
		return "", fmt.Errorf("the tool failed: %.2000s", text)
	}
	if text == "" && result.StructuredContent != nil {
		text = string(mustJSON(result.StructuredContent))
	}
	return text, nil
}
