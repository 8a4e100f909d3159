package skill

import (
	"slices"
	"strings"
	"unicode/utf8"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/tree"
)

// Write returns the files of the skill's directory, ordered by path. SKILL.md is written as the reference validator
// reads it: block style, allowed-tools as one text.
// Names of AllowedTools MUST NOT have spaces outside of parentheses, at which a reader divides the text.
func (s Skill) Write() ([]tree.File, error) {
	head, err := frontmatter.NewMap().
		Always("name", s.Name).
		Always("description", s.Description).
		Text("license", s.License).
		Text("compatibility", s.Compatibility).
		Text(ToolsMember, strings.Join(s.AllowedTools, " ")).
		TextMap("metadata", s.Metadata).
		YAML()
	if err != nil {
		return nil, err
	}
	files := append(slices.Clone(s.Files), tree.File{Path: FileName, Data: []byte(frontmatter.Join(head, s.Body))})
	slices.SortFunc(files, func(a, b tree.File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// Conform returns the skill under a name with everything that the specification demands: a description, and texts
// within their lengths. changed names the fields that lost something.
// A description that is made of the body is no loss and is not named.
func (s Skill) Conform(name string) (out Skill, changed []string) {
	out = s
	out.Dir, out.Name = name, name
	if strings.TrimSpace(s.Description) == "" {
		out.Description = fallback(s)
	}
	out.Description = frontmatter.OneLine(out.Description)
	if cut := truncate(out.Description, MaxDescription); cut != out.Description {
		out.Description, changed = cut, append(changed, "description")
	}
	if cut := truncate(s.Compatibility, maxCompatibility); cut != s.Compatibility {
		out.Compatibility, changed = cut, append(changed, "compatibility")
	}
	return out, changed
}

// fallback makes a description of the first line of the body that says something.
func fallback(s Skill) string {
	for _, line := range strings.Split(s.Body, "\n") {
		if line = strings.TrimSpace(strings.TrimLeft(line, "#>-* ")); line != "" {
			return line
		}
	}
	return "Instructions for " + s.Name
}

// truncate cuts a text to a number of characters.
// The mark of the cut counts as one of the characters.
func truncate(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
