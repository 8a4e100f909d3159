package oafagent

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"repute"
	"repute/agent/handler"
	"repute/manifest/oaf"
	"repute/manifest/oaf/secret"
)

// separator is between the server and the tool in the names that the model sees.
const separator = "__"

// Bounds of MCP servers. maxAnswer is of servers over HTTP alone, and MCPEndpoint reads up to twice its MaxAnswer.
const (
	callTime    = 30 * time.Second // of one call where the server's configuration does not say
	connectTime = 15 * time.Second // of listing the tools, with the connection
	maxAnswer   = 8 << 20          // bytes of one answer
)

// server is an MCP server of an agent.
type server struct {
	def     *oaf.Server
	name    string // as the model sees it
	connect handler.Connector
	program *handler.MCPProgram // nil for a server over HTTP
	rate    *rate.Limiter       // of calls; nil for no limit
	lists   *rate.Limiter       // of requests for the list of tools; nil for no limit
	timeout time.Duration
	hidden  *strings.Replacer // replaces values of the environment by their names
}

// newServer prepares a server. Nothing is started or connected yet.
func newServer(def *oaf.Server, o *Options) (*server, error) {
	s := &server{def: def, name: safeName(def.Name), timeout: callTime}
	if def.Connection.Timeout > 0 {
		s.timeout = min(time.Duration(def.Connection.Timeout*float64(time.Second)), MaxCallTime)
	}
	if member, path := def.Permissions.Braces(); member != "" {
		return nil, repute.Invalid("permissions."+member, fmt.Sprintf("%.120q has braces", path),
			"one path for each alternative")
	}
	v := &variables{o: o, taken: map[string]string{}}
	var err error
	switch def.Connection.Type {
	case oaf.TransportStdio:
		s.program, err = v.program(def)
		s.connect = s.program
	case oaf.TransportHTTP, oaf.TransportSSE:
		s.connect, err = v.endpoint(def)
	default:
		err = repute.Invalid("connection.type", fmt.Sprintf("%.40q is no transport", def.Connection.Type),
			"stdio, http or sse")
	}
	s.hidden = v.hidden()
	return s, err
}

// program is a server that this process starts. Values of the environment reach it by its own environment alone, which
// other users of the computer cannot read.
func (v *variables) program(def *oaf.Server) (*handler.MCPProgram, error) {
	c := &def.Connection
	if !v.o.Programs {
		return nil, repute.Invalid("connection.type", "is stdio, and programs of this agent are not allowed",
			"allow programs, or a server over HTTP")
	}
	if err := checkArgs(c.Args); err != nil {
		return nil, err
	}
	path, err := exec.LookPath(c.Command)
	if err != nil {
		return nil, repute.Invalid("connection.command", fmt.Sprintf("%.80q is not installed", c.Command), "a program")
	}
	p := &handler.MCPProgram{Path: path, Args: c.Args, Env: []string{"PATH=" + v.o.Getenv("PATH"),
		"HOME=" + v.o.Getenv("HOME")}}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		value, err := v.member("connection.env."+name, name, c.Env[name], secret.Member)
		if err != nil {
			return nil, err
		}
		p.Env = append(p.Env, name+"="+value)
	}
	return p, nil
}

// endpoint is a server over HTTP.
func (v *variables) endpoint(def *oaf.Server) (*handler.MCPEndpoint, error) {
	c := &def.Connection
	address, err := v.address(c.URL)
	if err != nil {
		return nil, err
	}
	e := &handler.MCPEndpoint{URL: address, Client: v.o.Client, Header: http.Header{}, MaxAnswer: maxAnswer / 2,
		SSE: c.Type == oaf.TransportSSE}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		value, err := v.member("connection.headers."+name, name, c.Headers[name], always)
		if err != nil {
			return nil, err
		}
		e.Header.Set(name, value)
	}
	if def.Auth.Token == "" {
		return e, nil
	}
	if _, ok := def.Auth.TokenVar(); !ok {
		return nil, repute.Invalid("authentication.token", "is a secret in the open", "${NAME} of the environment")
	}
	token, err := v.expand("authentication.token", strings.TrimSpace(def.Auth.Token), always)
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

// failure is an error of a server or about it, at most this long and without values of the environment, with its kind.
func (s *server) failure(what string, err error) error {
	return fmt.Errorf("%s: %.200s: %w", what, s.hidden.Replace(err.Error()), repute.ErrUnavailable)
}

// close ends the program of a server; one over HTTP has nothing to end.
func (s *server) close() {
	if s.program != nil {
		_ = s.program.Close() // its exit status tells nothing at the end
	}
}

// notes say what of the server's configuration only the server can enforce.
func (s *server) notes() (out []string) {
	p := &s.def.Permissions
	for _, name := range slices.Sorted(maps.Keys(p.Extra)) {
		out = append(out, fmt.Sprintf("MCP server %.80s: permission %.80q is left to the server", s.def.Name, name))
	}
	if p.MaxFileSize > 0 {
		out = append(out, fmt.Sprintf("MCP server %.80s: the largest size of a file is left to the server", s.def.Name))
	}
	if p.ReadOnly {
		out = append(out, fmt.Sprintf("MCP server %.80s: which of its tools only read is the server's own word",
			s.def.Name))
	}
	if s.limitsPaths() && s.program == nil {
		out = append(out, fmt.Sprintf("MCP server %.80s: symbolic links below allowed paths are left to the server",
			s.def.Name))
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
