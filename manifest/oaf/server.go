package oaf

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// Server is the configuration of one MCP server: a directory of mcp-configs/ with ActiveMCP.json and config.yaml, or
// one file mcp-configs/{name}.yaml.
type Server struct {
	Dir         string // the directory or the file, below the agent's, e.g. mcp-configs/filesystem
	Vendor      string
	Name        string // server, as the files say, else the name of the directory
	Version     string
	Selection   Selection
	Connection  Connection
	Auth        Auth
	Permissions Permissions
	RateLimit   RateLimit
	Extra       map[string]json.RawMessage // unknown members of config.yaml, also retry and health_check, as JSON
	Unknown     []string                   // members of both files that the format does not know, such as connection.uri
	Files       []tree.File                // other files of the directory, with their paths below it
}

// Context strategies of ActiveMCP.json.
const (
	StrategySubset = "subset" // only the selected tools
	StrategyAll    = "all"    // all tools but the excluded ones
)

// Selection is ActiveMCP.json: the tools of the server that the agent sees. The zero value allows every tool.
type Selection struct {
	Present  bool   // the file exists
	Strategy string // StrategySubset or StrategyAll; as written, else subset where tools are listed
	Tools    []SelectedTool
	Excluded []string        // names, or patterns in which * stands for any text; they win
	Settings json.RawMessage // tool_config, as JSON; nil without
}

// SelectedTool is one tool of a selection.
type SelectedTool struct {
	Name        string // or a pattern in which * stands for any text
	Enabled     bool
	Description string // replaces the server's description; "" keeps it
	Required    bool

	at problem.Place // of the entry; zero for a tool of no file
}

// Allows reports whether the agent may see and call a tool of the server. A tool that is excluded or disabled is never
// allowed, even if it is selected as well.
func (s Selection) Allows(tool string) bool {
	if slices.ContainsFunc(s.Excluded, func(pattern string) bool { return matches(pattern, tool) }) {
		return false
	}
	selected := false
	for _, t := range s.Tools {
		if matches(t.Name, tool) {
			if !t.Enabled {
				return false
			}
			selected = true
		}
	}
	return selected || !s.Present || s.Strategy == StrategyAll
}

// Describe returns the description that replaces the server's for a tool; "" if there is none.
func (s Selection) Describe(tool string) string {
	if t := find(s.Tools, func(t *SelectedTool) bool { return t.Name == tool }); t != nil {
		return t.Description
	}
	return ""
}

// matches reports whether a pattern, in which * stands for any text, is the name.
func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}

// Transports of MCP servers.
const (
	TransportSSE   = "sse"
	TransportHTTP  = "http" // streamable HTTP
	TransportStdio = "stdio"
)

// Connection says how the server is reached.
type Connection struct {
	Type    string // TransportSSE, TransportHTTP or TransportStdio
	URL     string // of sse and http; may have ${VAR}
	Timeout float64
	Command string // of stdio
	Args    []string
	Env     map[string]string // of stdio; values may have ${VAR}
	Headers map[string]string // of sse and http; values may have ${VAR}
}

// Auth says how the agent authenticates. The secret itself belongs in the environment.
type Auth struct {
	Type   string // bearer, api-key, oauth
	Token  string // as written, e.g. ${FILESYSTEM_TOKEN}
	Header string // of api-key; "" for the usual one
}

// TokenVar returns the environment variable that has the secret. ok is false where the file has another text, which is
// a secret in the open.
func (a Auth) TokenVar() (name string, ok bool) { return Variable(a.Token) }

// Variable returns the name in a text that is exactly ${NAME}.
func Variable(text string) (name string, ok bool) {
	m := regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`).FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return "", false
	}
	return m[1], true
}

// Permissions are what the agent may do with the server. Only the paths that a runtime gives to file tools can be
// enforced by it; the rest is the server's.
type Permissions struct {
	AllowPaths  []string // for reading and writing
	DenyPaths   []string // they win
	ReadPaths   []string // for reading only, of the other dialect
	WritePaths  []string // for writing, of the other dialect
	MaxFileSize int64    // bytes, 0 for no limit
	ReadOnly    bool
	Extra       map[string]json.RawMessage // unknown members, as JSON
}

// RateLimit bounds the calls to the server. The zero value is no limit.
type RateLimit struct {
	PerMinute float64
	Burst     int
}

// cleaned returns a path of the file in the form of Server.Dir.
func cleaned(p string) string { return path.Clean(strings.TrimPrefix(p, "./")) }
