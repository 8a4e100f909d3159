package skill

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// FileName is the file that makes a directory a skill.
const FileName = "SKILL.md"

// ToolsMember is the member with the tools that a skill may use.
const ToolsMember = "allowed-tools"

// Lengths from which the specification advises to divide a skill.
const (
	adviceLines  = 500
	adviceTokens = 5_000
	tokenBytes   = 4 // of English text, about
)

// Parse reads a skill from the files of its directory, whose paths are below it. where is the directory's path for
// problems. ok is false where there is no SKILL.md, or no readable one.
//
// A skill without a frontmatter is read, with its directory's name: many published ones have none. A frontmatter that
// is no YAML makes it unreadable, because its limits on tools would be lost.
func Parse(dir, where string, files []tree.File, l *problem.List) (s Skill, ok bool) {
	s = Skill{Dir: dir, Name: dir}
	file := path.Join(where, FileName)
	at := slices.IndexFunc(files, func(f tree.File) bool { return f.Path == FileName })
	if at < 0 {
		if other := tree.Misspelled(files, FileName); other != "" {
			l.Suggest(problem.CodeNoSkillFile, problem.Place{File: path.Join(where, other)}, "rename it to "+FileName,
				"there is no %s, and names have an upper and a lower case", FileName)
		} else if !l.HasError(file) {
			l.Add(problem.CodeNoSkillFile, problem.Place{File: where}, "has no %s", FileName)
		}
		return s, false
	}
	for i, f := range files {
		if i != at {
			s.Files = append(s.Files, f)
		}
	}
	text, ok := frontmatter.Clean(files[at].Data, file, l)
	if !ok {
		return s, false
	}
	parts := frontmatter.Split(text)
	s.Body = frontmatter.TrimBody(parts.Body)
	lines, tokens := strings.Count(s.Body, "\n")+1, len(s.Body)/tokenBytes
	if lines >= adviceLines || tokens >= adviceTokens {
		l.Add(problem.CodeSkillSize, problem.Place{File: file}, "has %d lines, about %d tokens", lines, tokens)
	}
	if !parts.HasHead {
		l.Add(problem.CodeSkillPlain, problem.Place{File: file, Line: 1}, "begins without ---")
		return s, true
	}
	head := parts.Object(file, l)
	if head == nil {
		return s, false
	}
	s.read(head)
	return s, true
}

// read takes the members of the frontmatter.
func (s *Skill) read(o *frontmatter.Object) {
	if name := o.Text("name"); name != "" {
		s.Name = name
	}
	s.Description = o.Text("description")
	s.License = o.Text("license")
	s.Compatibility = o.Text("compatibility")
	if o.IsObject("metadata") {
		in := o.Object("metadata")
		for _, key := range in.Keys() {
			if !in.IsText(key) {
				in.Report(problem.CodeType, key, "is no text; it is kept as JSON")
			}
		}
		s.Metadata = flattened(in)
	} else if o.Has("metadata") {
		o.Report(problem.CodeType, "metadata", "is no object")
	}
	if s.AllowedTools = tools(o); o.Has(ToolsMember) {
		s.ToolsLine = o.At(ToolsMember).Line
	}
	s.keepUnknown(o)
	s.check(o)
}

// keepUnknown keeps members that the specification does not know in the metadata, where it wants them.
// A member of the metadata wins over an unknown one of its name.
func (s *Skill) keepUnknown(o *frontmatter.Object) {
	for key, value := range flattened(o) {
		if _, taken := s.Metadata[key]; slices.Contains(members(), key) || taken {
			continue
		}
		if s.Metadata == nil {
			s.Metadata = map[string]string{}
		}
		s.Metadata[key] = value
	}
}

// flattened returns metadata as texts: a value that is no text is kept as JSON.
func flattened(o *frontmatter.Object) map[string]string {
	var out map[string]string
	for _, key := range o.Keys() {
		if out == nil {
			out = map[string]string{}
		}
		if o.IsText(key) {
			out[key] = o.Text(key)
		} else {
			out[key] = string(o.JSON(key))
		}
	}
	return out
}

// tools reads allowed-tools: one text with spaces between the names, or, as OAF's own example writes it, a list.
func tools(o *frontmatter.Object) []string {
	const key = ToolsMember
	if o.IsList(key) {
		o.Report(problem.CodeSkillTools, key, "is a list")
		return o.Texts(key)
	}
	return Tools(o.Text(key))
}

// Tools divides a text of tools at spaces and commas outside parentheses: "Bash(git add:*) Read" has two.
// A parenthesis that is never closed reaches to the end of the text, so that no part of its arguments becomes a tool.
func Tools(text string) []string {
	var out []string
	depth, start := 0, -1
	for i, c := range text + " " {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth = max(depth-1, 0)
		}
		isGap := depth == 0 && (c == ' ' || c == ',' || c == '\t' || c == '\n') || i == len(text)
		if isGap && start >= 0 {
			out, start = append(out, text[start:i]), -1
		} else if !isGap && start < 0 {
			start = i
		}
	}
	return out
}

// check reports what the specification of skills forbids.
func (s *Skill) check(o *frontmatter.Object) {
	switch {
	case !o.Has("name"):
		o.Report(problem.CodeSkillName, "name", "is missing; the directory names the skill")
	case !isName(s.Name):
		o.Report(problem.CodeSkillName, "name", "%.80q is not 1 to %d lower-case letters, digits and single hyphens",
			s.Name, MaxName)
	case s.Name != s.Dir:
		o.Report(problem.CodeSkillDirectory, "name", "%q is in the directory %.80q", s.Name, s.Dir)
	}
	if s.Description == "" {
		o.Report(problem.CodeSkillDescription, "description", "is missing")
	} else if n := utf8.RuneCountInString(s.Description); n > MaxDescription {
		o.Report(problem.CodeSkillLong, "description", "has %d characters, at most %d are allowed", n, MaxDescription)
	}
	if n := utf8.RuneCountInString(s.Compatibility); n > maxCompatibility {
		o.Report(problem.CodeSkillCompat, "compatibility", "has %d characters, at most %d are allowed", n,
			maxCompatibility)
	}
	o.CheckComment("name", "description")
	o.Unknown(problem.CodeSkillMember, frontmatter.Members{"": {Names: members()}})
	for _, key := range o.Keys() {
		if slices.Contains(members(), key) && key != ToolsMember && o.IsFlow(key) {
			o.Report(problem.CodeSkillFlow, key, "is written in brackets")
		}
	}
}

// members returns the members of SKILL.md that the format of Agent Skills names; others are reported.
func members() []string {
	return []string{"name", "description", "license", "compatibility", "metadata", ToolsMember}
}

// isName reports whether a text is a name of a skill.
// The specification's own pattern: no hyphen at an end, and no two in a row.
func isName(s string) bool {
	return len(s) <= MaxName && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(s)
}
