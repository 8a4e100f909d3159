package oafagent

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"repute"
)

// pathMembers are the members of an input that name files, by the custom of file servers.
func pathMembers() []string {
	return []string{"path", "paths", "file", "files", "file_path", "filepath", "filename", "source", "destination",
		"directory", "dir", "root", "uri", "target"}
}

// permits refuses paths that the agent's file does not permit. Only paths in the members that file tools have
// can be recognized: what else a tool touches is left to the server.
func (s *server) permits(t offered, input json.RawMessage) error {
	p := &s.def.Permissions
	if len(p.AllowPaths)+len(p.DenyPaths)+len(p.ReadPaths)+len(p.WritePaths) == 0 {
		return nil
	}
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return repute.Invalid("input", "is no JSON", "an object")
	}
	allowed := slices.Concat(p.AllowPaths, p.WritePaths)
	if t.ReadOnly {
		allowed = append(allowed, p.ReadPaths...)
	}
	limited := len(p.AllowPaths)+len(p.ReadPaths)+len(p.WritePaths) > 0
	for _, file := range paths(v, false) {
		switch {
		case slices.ContainsFunc(p.DenyPaths, func(d string) bool { return below(file, d) }):
			return repute.Invalid("path", fmt.Sprintf("%.200q is denied", file), "another path")
		case limited && !slices.ContainsFunc(allowed, func(a string) bool { return below(file, a) }):
			return repute.Invalid("path", fmt.Sprintf("%.200q is not allowed", file),
				"a path below one of "+strings.Join(allowed, ", "))
		}
	}
	return nil
}

// paths collects the texts of members that name files.
func paths(v any, named bool) (out []string) {
	switch v := v.(type) {
	case string:
		if named {
			out = append(out, strings.TrimPrefix(v, "file://"))
		}
	case []any:
		for _, x := range v {
			out = append(out, paths(x, named)...)
		}
	case map[string]any:
		for name, x := range v {
			out = append(out, paths(x, slices.Contains(pathMembers(), strings.ToLower(name)))...)
		}
	}
	return out
}

// below reports whether a file is a directory, or in it. ** and * at the end of the directory mean all below it.
func below(file, dir string) bool {
	dir = strings.TrimSuffix(strings.TrimSuffix(dir, "*"), "*")
	file, dir = path.Clean(file), path.Clean(dir)
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}
