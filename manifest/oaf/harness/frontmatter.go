package harness

import (
	"encoding/json"
	"regexp"
	"strings"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
)

// mended returns a file of Claude Code whose frontmatter is no YAML with its plain texts in quotes, if that makes it
// YAML. Claude Code reads it by lines, so that descriptions with a colon are common there. The lines stay where they
// are.
// The bytes are returned as they are where quoting does not help, so that the problem is reported for the file as
// written.
func mended(data []byte) []byte {
	text, ok := frontmatter.Clean(data, "", &problem.List{})
	if !ok {
		return data
	}
	parts := frontmatter.Split(text)
	if !parts.HasHead || isYAML(parts.Head) {
		return data
	}
	lines := strings.Split(parts.Head, "\n")
	for i, line := range lines {
		lines[i] = quotedLine(line)
	}
	head := strings.Join(lines, "\n")
	if !isYAML(head) {
		return data
	}
	return []byte("---\n" + head + "---\n" + parts.Body)
}

// isYAML reports whether a text is a frontmatter that can be read.
func isYAML(head string) bool {
	return frontmatter.ParseYAML(head, "", &problem.List{}) != nil
}

// quotedLine returns a line of a member at the top with its plain text in quotes. Any other line stays.
// A value that begins with a quote, a bracket or another sign of YAML was written as YAML, and is left alone.
func quotedLine(line string) string {
	m := regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*:) +([^ "'|>\[{&*!].*)$`).FindStringSubmatch(line)
	if m == nil {
		return line
	}
	value, err := json.Marshal(strings.TrimSpace(m[2]))
	if err != nil {
		return line
	}
	return m[1] + " " + string(value)
}
