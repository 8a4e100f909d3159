// Package frontmatter reads and writes Markdown files that begin with YAML, and the YAML and JSON files next to them.
//
// Clean makes UTF-8 text with LF line ends of bytes, Split divides it, and ParseYAML and ParseJSON return an Object.
// Its methods read members and report what is wrong with them, with file, JSON pointer and line, to a problem.List; a
// member of another type counts as absent. Version 1.10 stays "1.10": scalars keep their characters, and objects their
// order. Object.Restricting reads members that restrict an agent: there a wrong type is an error, and never permits
// more. Object.Unknown compares a document with a table of Members and suggests what a misspelled name was meant to be.
//
// Map writes objects in block style, with quotes wherever a reader of another YAML could read something else.
//
// Files come from strangers: aliases count as often as they are used, and depth and values are bounded.
package frontmatter

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"repute/manifest/oaf/problem"
)

// MaxHead bounds the frontmatter, in bytes. The longest that was seen has 4 KiB.
const MaxHead = 64 << 10

// fence begins the frontmatter, as the first line of a file, and ends it. White space may follow.
const fence = "---"

// Text is a file with LF line ends, divided at the end of its frontmatter.
type Text struct {
	Head    string // the YAML; "" without
	HasHead bool
	Body    string // everything after the frontmatter, or the whole text without one
}

// Clean returns the text of a file as UTF-8 with LF line ends. It reports what it changes, and returns false for
// bytes that are no text.
func Clean(b []byte, file string, l *problem.List) (string, bool) {
	at := problem.Place{File: file, Line: 1}
	if plain, ok := bytes.CutPrefix(b, []byte("\xef\xbb\xbf")); ok {
		l.Add(problem.CodeBOM, at, "starts with a byte order mark")
		b = plain
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		l.Add(problem.CodeEncoding, at, "is not UTF-8 text")
		return "", false
	}
	text := string(b)
	if strings.Contains(text, "\r") {
		l.Add(problem.CodeCRLF, at, "has carriage returns")
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	return text, true
}

// Split divides a text of Clean. The frontmatter begins on the first line and ends at the next line that is ---; later
// ones belong to the body.
func Split(text string) Text {
	first, rest, ok := strings.Cut(text, "\n")
	if !ok || strings.TrimRight(first, " \t") != fence {
		return Text{Body: text}
	}
	for at := 0; at < len(rest); {
		line, _, more := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == fence {
			body := rest[min(at+len(line)+1, len(rest)):]
			return Text{Head: rest[:at], HasHead: true, Body: body}
		}
		if at += len(line) + 1; !more {
			break
		}
	}
	return Text{Body: text}
}

// Object reads the frontmatter, like ParseYAML. Its first line is the second of the file.
func (t Text) Object(file string, l *problem.List) *Object { return parseYAML(t.Head, file, 1, l) }

// TrimBody removes blank lines at both ends and spaces at the end of a body.
func TrimBody(body string) string {
	body = strings.TrimRight(body, " \t\n")
	for {
		line, rest, more := strings.Cut(body, "\n")
		if !more || strings.Trim(line, " \t") != "" {
			return body
		}
		body = rest
	}
}

// Join returns a file of frontmatter and body.
func Join(head, body string) string {
	if body == "" {
		return fence + "\n" + head + fence + "\n"
	}
	return fence + "\n" + head + fence + "\n\n" + body + "\n"
}

// Replace gives a member at the top of the frontmatter another text and changes nothing else of a file. It reports
// whether the member has a line of its own.
func Replace(file, key, value string) (string, bool) {
	lines := strings.SplitAfter(file, "\n")
	for i, line := range lines {
		if i > 0 && strings.TrimRight(line, " \t\r\n") == fence {
			return file, false
		}
		if !strings.HasPrefix(line, key+":") {
			continue
		}
		end := line[len(strings.TrimRight(line, "\r\n")):]
		lines[i] = key + ": " + string(quoted(value)) + end
		return strings.Join(lines, ""), true
	}
	return file, false
}
