package oafagent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"repute"
)

// plainName is the name of a member of an input as the lists below have it: servers write file_path, filePath and
// file-path.
func plainName(member string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(member))
}

// namesPath reports whether a member of an input names files, by the custom of file servers.
func namesPath(member string) bool {
	return regexp.MustCompile(`(paths?|files?|filenames?|dirs?|director(y|ies)|folders?|uris?|` +
		`^(source|destination|root|target|src|dst|cwd|output|from|to))$`).MatchString(plainName(member))
}

// hasText reports whether a member of an input has the content of files or a part of it, by the custom of file servers.
func hasText(member string) bool {
	return slices.Contains([]string{"content", "text", "newtext", "oldtext", "newstr", "oldstr", "newstring",
		"oldstring",
		"filetext", "inserttext", "body", "code", "regex", "query"}, plainName(member))
}

// limitsPaths reports whether the configuration of the server limits paths.
func (s *server) limitsPaths() bool {
	p := &s.def.Permissions
	return len(p.AllowPaths)+len(p.DenyPaths)+len(p.ReadPaths)+len(p.WritePaths) > 0
}

// permits returns repute.ErrInvalid for an input with a path that the agent's file does not permit. reads says that
// the tool only reads. A text is a path if its member names files or if it looks like a path. Texts in members with
// content are not checked. Any other text, such as a command, and each absolute path in it are checked against the
// denied places only. Without configured paths nothing is checked.
func (s *server) permits(input json.RawMessage, reads bool) error {
	if !s.limitsPaths() {
		return nil
	}
	var v any
	if err := json.Unmarshal(input, &v); err != nil {
		return repute.Invalid("input", "is no JSON", "an object")
	}
	p := &s.def.Permissions
	limits := pathLimits{deny: p.DenyPaths, allow: slices.Concat(p.AllowPaths, p.WritePaths),
		limited: len(p.AllowPaths)+len(p.ReadPaths)+len(p.WritePaths) > 0, local: s.program != nil}
	if reads {
		limits.allow = append(limits.allow, p.ReadPaths...)
	}
	return limits.check(v, "input", false)
}

// pathLimits are the paths that a call may touch.
type pathLimits struct {
	deny, allow []string
	limited     bool // only what allow has is allowed
	local       bool // the server is a program on this computer
}

// check tests the texts of an input, and the names of its members, which can be paths too. named says that the member
// around a value names files.
func (l *pathLimits) check(v any, member string, named bool) error {
	switch v := v.(type) {
	case string:
		return l.text(v, member, named)
	case []any:
		for _, x := range v {
			if err := l.check(x, member, named); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, x := range v {
			if err := l.text(name, member, named && strings.ContainsAny(name, `/\`)); err != nil {
				return err
			}
			if err := l.check(x, name, namesPath(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPath bounds a text that is tested as a path, in bytes; a longer one is no path for any system.
const maxPath = 4096

// text tests one text.
func (l *pathLimits) text(text, member string, named bool) error {
	if !named && hasText(member) {
		return nil
	}
	refuse := func(path, why string) error {
		return repute.Invalid(fmt.Sprintf("%.80s", member), fmt.Sprintf("%.200q %s", path, why), l.hint())
	}
	trimmed := strings.TrimSpace(text)
	odd := len(trimmed) > maxPath || strings.ContainsFunc(trimmed, unicode.IsControl)
	whole := named || looksLikePath(trimmed)
	if odd && (named || whole && l.limited) {
		return refuse(trimmed, "is not allowed: it is long or has a control character")
	}
	for _, part := range absoluteParts(trimmed) {
		if l.denied(readingsOf(part), false) {
			return refuse(part, "is denied")
		}
	}
	if odd {
		return nil
	}
	readings := readingsOf(trimmed)
	switch why := oddity(readings); {
	case l.denied(readings, named):
		return refuse(trimmed, "is denied")
	case why != "":
		return refuse(trimmed, "is not allowed: "+why)
	case whole && l.limited && !l.allowed(readings):
		return refuse(trimmed, "is not allowed")
	}
	return nil
}

// absoluteParts are the absolute paths in a text such as a command.
func absoluteParts(text string) []string {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'=,;|&<>()`, r)
	})
	return slices.DeleteFunc(words, func(w string) bool { return !strings.HasPrefix(w, "/") || len(w) > maxPath })
}

// hint returns the paths that are allowed, for an error.
func (l *pathLimits) hint() string {
	switch {
	case !l.limited:
		return "another path"
	case len(l.allow) == 0:
		return "give no path: the agent's file allows paths only to tools that read"
	}
	return "an absolute path below one of " + strings.Join(l.allow, ", ")
}

// denied reports whether a path in one of its readings may be in a denied directory. A word that no member calls a
// path is denied only where a limit has it as it is.
func (l *pathLimits) denied(readings []string, named bool) bool {
	for _, file := range l.places(readings, true) {
		if slices.ContainsFunc(l.deny, func(d string) bool {
			return (named || strings.Contains(file, "/")) && l.denies(d, file) || strings.EqualFold(d, file)
		}) {
			return true
		}
	}
	return false
}

// allowed reports whether a path in each of its readings is in an allowed directory.
func (l *pathLimits) allowed(readings []string) bool {
	for _, file := range l.places(readings, false) {
		if !slices.ContainsFunc(l.allow, func(a string) bool { return l.allows(a, file) }) {
			return false
		}
	}
	return true
}
