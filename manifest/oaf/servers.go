package oaf

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/secret"
	"repute/manifest/oaf/tree"
)

// selectionName is the file with the selected tools of an MCP server.
const selectionName = "ActiveMCP.json"

// parseServer reads one entry of mcp-configs/: a directory, or a file whose path below the entry is "".
func parseServer(name string, files []tree.File, list *problem.List) Server {
	s := Server{Dir: path.Join(serversDir, name), Name: strings.TrimSuffix(name, path.Ext(name))}
	if len(files) == 1 && files[0].Path == "" {
		list.Add(problem.CodeServerFile, problem.Place{File: s.Dir}, "is a file")
		s.readConfig(files[0].Data, s.Dir, list)
		return s
	}
	s.Name = name
	configured := false
	for _, f := range files {
		file := path.Join(s.Dir, f.Path)
		switch {
		case f.Path == selectionName:
			s.readSelection(f.Data, file, list)
		case !configured && (f.Path == "config.yaml" || f.Path == "config.yml"):
			configured = true
			s.readConfig(f.Data, file, list)
		default:
			s.Files = append(s.Files, f)
		}
	}
	if other := tree.Misspelled(files, selectionName); other != "" {
		s.Selection = Selection{Present: true, Strategy: StrategySubset} // of no tool: it was meant to restrict them
		list.Suggest(problem.CodeRestriction, problem.Place{File: path.Join(s.Dir, other)}, "rename it to "+selectionName,
			"is not %s, and names have an upper and a lower case", selectionName)
	}
	if list.HasError(path.Join(s.Dir, selectionName)) {
		s.Selection = Selection{Present: true, Strategy: StrategySubset} // of no tool: it cannot be read
	}
	if other := tree.Misspelled(files, "config.yaml"); !configured && other != "" {
		list.Suggest(problem.CodeNoConfig, problem.Place{File: path.Join(s.Dir, other)}, "rename it to config.yaml",
			"is not config.yaml, and names have an upper and a lower case")
	} else if !configured && !list.HasError(path.Join(s.Dir, "config.yaml")) {
		list.Add(problem.CodeNoConfig, problem.Place{File: s.Dir}, "has no config.yaml")
	}
	if !s.Selection.Present {
		list.Add(problem.CodeNoSelection, problem.Place{File: s.Dir}, "has no %s", selectionName)
	}
	return s
}

// readSelection reads ActiveMCP.json in either form. A file that cannot be read selects no tool: an agent MUST NOT get more
// tools because its file is broken.
func (s *Server) readSelection(b []byte, file string, list *problem.List) {
	s.Selection = Selection{Present: true, Strategy: StrategySubset} // a broken file allows nothing
	text, ok := frontmatter.Clean(b, file, list)
	if !ok {
		return
	}
	o := frontmatter.ParseJSON(text, file, list)
	if o == nil {
		return
	}
	s.identity(o)
	s.Unknown = append(s.Unknown, o.Unknown(problem.CodeMember, selectionMembers())...)
	sel, limits := &s.Selection, o.Restricting()
	sel.Excluded = append(excludedTools(limits, "excludedTools"), excludedTools(limits, "disabled_tools")...)
	sel.Settings = o.JSON("tool_config")
	for _, t := range limits.Objects("selectedTools", "name") {
		sel.Tools = append(sel.Tools, SelectedTool{Name: t.Restricting().Text("name"),
			Enabled: t.Restricting().Bool("enabled", true), Description: t.Text("description"),
			Required: t.Bool("required", false), at: t.At("")})
	}
	for _, name := range limits.Texts("enabled_tools") {
		sel.Tools = append(sel.Tools, SelectedTool{Name: name, Enabled: true, at: o.At("enabled_tools")})
	}
	sel.Strategy = strategy(o, sel)
	for _, key := range []string{"enabled_tools", "disabled_tools", "tool_config", "name"} {
		if o.Has(key) {
			o.Report(problem.CodeDialect, key, "is a member of the other form")
			break
		}
	}
	checkSelection(sel, list)
}

// excludedTools reads a list of tools that the agent must not see: names, or objects with a name as in selectedTools.
func excludedTools(o *frontmatter.Object, key string) []string {
	if !o.IsList(key) {
		return o.Texts(key)
	}
	names := []string{}
	for _, t := range o.Objects(key, "name") {
		if !t.Restricting().IsText("name") {
			o.Report(problem.CodeRestriction, key, "an entry is no text and no object with a name")
			continue
		}
		names = append(names, t.Text("name"))
	}
	return names
}

// strategy returns the context strategy: as written, else by whether tools are listed.
func strategy(o *frontmatter.Object, sel *Selection) string {
	switch written := o.Restricting().Text("contextStrategy"); written {
	case StrategyAll, StrategySubset:
		return written
	case "":
	default:
		o.Report(problem.CodeEnum, "contextStrategy", "%.80q is neither %s nor %s", written, StrategySubset, StrategyAll)
		return StrategySubset
	}
	if sel.Tools == nil && !o.Has("selectedTools") && !o.Has("enabled_tools") {
		return StrategyAll
	}
	return StrategySubset
}

// checkSelection reports tools that are selected and excluded.
func checkSelection(sel *Selection, list *problem.List) {
	for _, t := range sel.Tools {
		if t.Enabled && !sel.Allows(t.Name) {
			list.Add(problem.CodeExcluded, t.at, "%.80q is selected and excluded", t.Name)
		}
	}
}

// identity takes vendor, server and version of either file. The server may be an object with a name.
func (s *Server) identity(o *frontmatter.Object) {
	in, name := o, o.Text
	if o.IsObject("server") {
		in = o.Object("server")
		name = func(string) string { return in.Text("name") }
		o.Report(problem.CodeDialect, "server", "is an object")
	}
	if n := name("server"); n != "" {
		s.Name = n
	} else if n := o.Text("name"); n != "" {
		s.Name = n
	}
	if v := in.Text("vendor"); v != "" {
		s.Vendor = v
	}
	if v := version(in); v != "" {
		s.Version = v
	}
}

// readConfig reads config.yaml in either form. A file that cannot be read leaves the server without a connection.
func (s *Server) readConfig(b []byte, file string, list *problem.List) {
	text, ok := frontmatter.Clean(b, file, list)
	if !ok {
		return
	}
	o := frontmatter.ParseYAML(text, file, list)
	if o == nil {
		return
	}
	s.identity(o)
	s.Connection = readConnection(o)
	s.Auth = readAuth(o)
	s.Permissions = readPermissions(o.Restricting().Object("permissions").Restricting())
	s.RateLimit = readRateLimit(o)
	s.Extra = o.Rest()
	s.Unknown = append(s.Unknown, o.Unknown(problem.CodeMember, configMembers())...)
	s.checkConfig(o)
}

// connectionOf returns the object that says how the server is reached: connection, or server in the other form.
func connectionOf(o *frontmatter.Object) *frontmatter.Object {
	if in := o.Object("connection"); in != nil || !o.IsObject("server") {
		return in
	}
	return o.Object("server")
}

// readConnection reads how the server is reached.
func readConnection(o *frontmatter.Object) Connection {
	in := connectionOf(o)
	if in == nil {
		return Connection{}
	}
	c := Connection{Type: transport(in.Text("type")), URL: in.Text("url"), Command: in.Text("command"),
		Args: in.Texts("args"),
		Env:  in.TextMap("env"), Headers: in.TextMap("headers")}
	if c.Type == "" {
		c.Type = transport(in.Text("transport"))
	}
	if t, ok := in.Number("timeout"); ok {
		if t <= 0 {
			in.Report(problem.CodeRange, "timeout", "is not above 0")
		} else {
			c.Timeout = t
		}
	}
	if c.Type == "" {
		c.Type = guessedTransport(c)
	}
	return c
}

// transport returns the name of a transport in the words of the format.
func transport(written string) string {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(written)) {
	case "streamablehttp", "http", "https":
		return TransportHTTP
	case "sse":
		return TransportSSE
	case "stdio":
		return TransportStdio
	}
	return written
}

// guessedTransport returns the transport of a connection whose file names none, by what it has; "" where it has nothing.
func guessedTransport(c Connection) string {
	switch {
	case c.Command != "":
		return TransportStdio
	case strings.HasSuffix(c.URL, "/sse"):
		return TransportSSE
	case c.URL != "":
		return TransportHTTP
	}
	return ""
}

// readAuth reads auth, or authentication of the other form, which names the variable itself.
func readAuth(o *frontmatter.Object) Auth {
	if in := o.Object("auth"); in != nil {
		return Auth{Type: in.Text("type"), Token: in.Text("token"), Header: in.Text("header")}
	}
	in := o.Object("authentication")
	if in == nil {
		return Auth{}
	}
	o.Report(problem.CodeDialect, "authentication", "is a member of the other form")
	a := Auth{Type: strings.ReplaceAll(in.Text("type"), "_", "-"), Token: in.Text("token"), Header: in.Text("header")}
	if name := in.Text("env_var"); name != "" {
		a.Token = "${" + name + "}"
	}
	return a
}

// readPermissions reads what the agent may do with the server. Members that are not known are kept, because the server may
// enforce them.
func readPermissions(o *frontmatter.Object) Permissions {
	if o == nil {
		return Permissions{}
	}
	return Permissions{
		AllowPaths: o.Texts("allow_paths"), DenyPaths: o.Texts("deny_paths"),
		ReadPaths: paths(o, "read"), WritePaths: paths(o, "write"),
		MaxFileSize: size(o, "max_file_size"), ReadOnly: o.Bool("read_only", false), Extra: o.Rest(),
	}
}

// Braces returns the first path with braces, and its member; empty texts where there is none. A pattern such as
// *.{pem,key}, which other programs expand, would match no file of either name.
func (p *Permissions) Braces() (member, path string) {
	lists := [][]string{p.AllowPaths, p.DenyPaths, p.ReadPaths, p.WritePaths}
	for i, member := range []string{"allow_paths", "deny_paths", "read", "write"} {
		at := slices.IndexFunc(lists[i], func(path string) bool { return strings.ContainsAny(path, "{}") })
		if at >= 0 {
			return member, lists[i][at]
		}
	}
	return "", ""
}

// paths reads a list of the other form; a bool there is no list and is kept as unknown.
func paths(o *frontmatter.Object, key string) []string {
	if o.IsBool(key) {
		return nil
	}
	return o.Texts(key)
}

// size reads a number of bytes, such as 10MB.
func size(o *frontmatter.Object, key string) int64 {
	text := strings.TrimSpace(o.Text(key))
	if text == "" {
		return 0
	}
	m := regexp.MustCompile(`^(?i)([0-9]{1,9})\s*(b|kb?|mb?|gb?|kib|mib|gib)?$`).FindStringSubmatch(text)
	if m == nil {
		o.Report(problem.CodeRestriction, key, "is no size, such as 10MB")
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64) // at most nine digits
	unit := strings.ToLower(m[2])
	factor := int64(1000)
	if strings.HasSuffix(unit, "ib") {
		factor = 1024
	}
	for _, prefix := range []string{"k", "m", "g"} {
		if unit == "" || unit == "b" {
			break
		}
		n *= factor
		if strings.HasPrefix(unit, prefix) {
			break
		}
	}
	return n
}

// readRateLimit reads the bound of calls. Published files give it a second, a minute or an hour.
func readRateLimit(o *frontmatter.Object) RateLimit {
	in := o.Object("rate_limit")
	if in == nil {
		if in = o.Object("rate_limiting"); in == nil {
			return RateLimit{}
		}
		o.Report(problem.CodeDialect, "rate_limiting", "is a member of the other form")
	}
	r := RateLimit{Burst: max(in.Whole("burst"), in.Whole("burst_size"))}
	for _, unit := range []struct {
		key       string
		perMinute float64
	}{{"requests_per_minute", 1}, {"requests_per_second", 60}, {"requests_per_hour", 1. / 60}} {
		f, ok := in.Number(unit.key)
		if ok && f <= 0 {
			in.Report(problem.CodeRange, unit.key, "is not above 0")
		} else if ok {
			r.PerMinute = f * unit.perMinute
		}
	}
	return r
}

// checkConfig reports a server that cannot be reached, and secrets in the file.
func (s *Server) checkConfig(o *frontmatter.Object) {
	c, in := s.Connection, connectionOf(o)
	switch {
	case c.Type == "":
		o.Report(problem.CodeNoConnection, "connection", "is missing or says no type, url and command")
	case !slices.Contains([]string{TransportSSE, TransportHTTP, TransportStdio}, c.Type):
		in.Report(problem.CodeEnum, "type", "%.80q is none of sse, http, stdio", c.Type)
	case c.Type == TransportStdio && c.Command == "":
		in.Report(problem.CodeNoAddress, "command", "is missing, and the type is stdio")
	case c.Type != TransportStdio && c.URL == "":
		in.Report(problem.CodeNoAddress, "url", "is missing")
	}
	auth := o.Object("auth")
	if auth == nil {
		auth = o.Object("authentication") // of the other form
	}
	if a := s.Auth; a.Type != "" && !slices.Contains([]string{"bearer", "api-key", "oauth"}, a.Type) {
		auth.Report(problem.CodeEnum, "type", "%.80q is none of bearer, api-key, oauth", a.Type)
	}
	if _, isVariable := s.Auth.TokenVar(); s.Auth.Token != "" && !isVariable {
		auth.Report(problem.CodeSecret, "token", "is not ${NAME}")
	}
	if member, path := s.Permissions.Braces(); member != "" {
		o.Object("permissions").Report(problem.CodeBraces, member, "%.120q has braces", path)
	}
	s.checkSecrets(in)
}

// checkSecrets reports what looks like a secret in the connection. The problems show nothing of it.
func (s *Server) checkSecrets(in *frontmatter.Object) {
	const message = "has what looks like a secret in the open"
	c := s.Connection
	for _, member := range []struct {
		name   string
		values map[string]string
	}{{"env", c.Env}, {"headers", c.Headers}} {
		for _, key := range slices.Sorted(maps.Keys(member.values)) {
			if secret.Member(key, member.values[key]) {
				in.Object(member.name).Report(problem.CodeSecret, key, message)
			}
		}
	}
	if secret.URL(c.URL) {
		in.Suggest(problem.CodeSecret, "url", "write auth.token or a header with ${NAME}, and set the variable", message)
	}
	for i := range c.Args {
		if secret.Argument(c.Args, i) {
			in.Suggest(problem.CodeSecret, "args", "write it into env with ${NAME}, and set the variable",
				"number %d "+message, i+1)
		}
	}
}

// sized returns a JSON number of bytes in the form of the format.
func sized(n int64) json.RawMessage {
	if n == 0 {
		return nil
	}
	return json.RawMessage(strconv.FormatInt(n, 10))
}
