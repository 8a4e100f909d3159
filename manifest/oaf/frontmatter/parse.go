package frontmatter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute/manifest/oaf/problem"
)

// Limits of one document. Aliases count as often as they are used.
const (
	maxNodes = 20_000
	maxDepth = 32
)

// ParseYAML reads one YAML document whose top is an object. It returns nil, and reports why, for every other text.
func ParseYAML(text, file string, l *problem.List) *Object { return parseYAML(text, file, 0, l) }

// parseYAML is ParseYAML of a text before which its file has so many lines.
func parseYAML(text, file string, offset int, l *problem.List) *Object {
	d := &document{file: file, offset: offset, list: l}
	if len(text) > MaxHead {
		l.Add(problem.CodeLongHead, d.place("", 0), "has %d bytes, at most %d are read", len(text), MaxHead)
		return nil
	}
	var root yaml.Node
	if err := d.unmarshal(text, &root); err != nil {
		line := yamlLine(err)
		reason := yamlReason(err)
		if isTabbed(text, line) {
			reason = "the line is indented by a tab"
		}
		l.Add(problem.CodeYAML, d.place("", line), "%.200s", reason)
		return nil
	}
	return d.open(&root)
}

// unmarshal reads YAML. Published agents write author: @name without quotes, which is no YAML; it is read as if it had
// them.
func (d *document) unmarshal(text string, root *yaml.Node) error {
	err := one(text, root)
	if err == nil {
		return nil
	}
	reserved := regexp.MustCompile("(?m)^(\\s*(?:- )?[A-Za-z_-]+:[ ]+)([@`][^\"\\\\\n]*?)[ ]*$")
	mended := reserved.ReplaceAllString(text, `$1"$2"`)
	if mended == text || one(mended, root) != nil {
		return err
	}
	at := reserved.FindStringSubmatchIndex(text)
	before := text[at[2]:at[3]]
	key := strings.TrimLeft(before, " \t\n")
	path := ""
	if indent := before[:len(before)-len(key)]; indent == "" || strings.HasSuffix(indent, "\n") {
		path = "/" + pointer(strings.TrimRight(key, ": ")) // a member at the top
	}
	d.list.Add(problem.CodeReserved, d.place(path, 1+strings.Count(text[:at[3]], "\n")),
		"a text begins with @ or ` and has no quotes")
	return nil
}

// one reads a text that is one YAML document. A second one would be ignored by some readers and not by others.
func one(text string, root *yaml.Node) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(root); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := dec.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return errors.New("a second document follows")
	}
	return nil
}

// ParseJSON reads one JSON object, like ParseYAML.
func ParseJSON(text, file string, l *problem.List) *Object {
	d := &document{file: file, list: l}
	if len(text) > MaxHead {
		l.Add(problem.CodeLongHead, d.place("", 0), "has %d bytes, at most %d are read", len(text), MaxHead)
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	root, err := (&jsonReader{dec: dec, text: text}).value(0)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err != nil {
		l.Add(problem.CodeJSON, d.place("", 1+strings.Count(text[:min(int(dec.InputOffset()), len(text))], "\n")),
			"%.200s",
			err)
		return nil
	}
	return d.open(root)
}

// jsonReader makes YAML nodes of JSON, so that one reader serves both.
type jsonReader struct {
	dec  *json.Decoder
	text string
	read int // bytes whose lines are counted
	line int
}

// position returns the line that the decoder has reached.
func (r *jsonReader) position() int {
	at := int(r.dec.InputOffset())
	r.line += strings.Count(r.text[r.read:at], "\n")
	r.read = at
	return r.line + 1
}

// value reads one value. Nesting beyond the limit is an error, so that the stack is bounded.
func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	token, err := r.dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.position()}
	switch t := token.(type) {
	case json.Delim:
		return n, r.fill(n, t, depth)
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
		if _, err := t.Int64(); err == nil {
			n.Tag = "!!int"
		}
	case bool:
		n.Tag, n.Value = "!!bool", strconv.FormatBool(t)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, nil
}

// fill reads the members of an object or the entries of a list.
func (r *jsonReader) fill(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for r.dec.More() {
		child, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, child)
	}
	_, err := r.dec.Token()
	return err
}

// document is one file that is being read.
type document struct {
	file   string
	offset int // lines before the text
	list   *problem.List
	root   *yaml.Node // of the open document
}

// place returns a place in the file. Lines of the parser begin at the frontmatter, which is not the first line of the
// file.
func (d *document) place(path string, line int) problem.Place {
	if line > 0 || d.offset > 0 {
		line += d.offset
	}
	return problem.Place{File: d.file, Path: path, Line: line}
}

// open checks the tree against the limits and returns its object.
func (d *document) open(root *yaml.Node) *Object {
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	if left, ok := expand(root, maxNodes, 0); !ok || left < 0 {
		d.list.Add(problem.CodeAlias, d.place("", root.Line), "expands to more than %d values or %d levels", maxNodes,
			maxDepth)
		return nil
	}
	if root.Kind != yaml.MappingNode {
		d.list.Add(problem.CodeNotObject, d.place("", root.Line), "is no object")
		return nil
	}
	d.root = root
	return d.object(root, "")
}

// expand counts the values of a tree with its aliases written out. It returns what is left of the budget, and false
// where the nesting is too deep. An alias to an ancestor is too deep.
func expand(n *yaml.Node, budget, depth int) (int, bool) {
	if depth > maxDepth || budget < 0 {
		return budget, false
	}
	if n.Kind == yaml.AliasNode {
		return expand(n.Alias, budget, depth+1)
	}
	budget--
	for _, child := range n.Content {
		var ok bool
		if budget, ok = expand(child, budget, depth+1); !ok || budget < 0 {
			return budget, false
		}
	}
	return budget, true
}

// target follows an alias.
func target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// yamlLine returns the line that an error of the library names, relative to its text; 0 without.
func yamlLine(err error) int {
	if m := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1]) // digits; what does not fit is no line
		return line
	}
	return 0
}

// yamlReason returns the reason in an error of the library without its own line, which the problem has.
func yamlReason(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = regexp.MustCompile(`^(load errors?:\s*)?`).ReplaceAllString(text, "")
	return strings.TrimSpace(regexp.MustCompile(`(at )?lines? \d+(, column \d+)?:?\s*`).ReplaceAllString(text, ""))
}

// toJSON returns a tree as JSON. Numbers keep their characters where JSON can have them.
func toJSON(n *yaml.Node) json.RawMessage {
	var b bytes.Buffer
	writeJSON(&b, target(n))
	return b.Bytes()
}

// writeJSON writes a tree as JSON. Keys keep their order and numbers their characters, so that 1.10 does not become
// 1.1.
func writeJSON(b *bytes.Buffer, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(quoted(target(n.Content[i]).Value))
			b.WriteByte(':')
			writeJSON(b, target(n.Content[i+1]))
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, child := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, target(child))
		}
		b.WriteByte(']')
	default:
		b.Write(scalarJSON(n))
	}
}

// scalarJSON returns a scalar as JSON: what JSON has no form for, such as 0x1F or a date, becomes a text.
func scalarJSON(n *yaml.Node) []byte {
	switch n.ShortTag() {
	case "!!null":
		return []byte("null")
	case "!!bool":
		return []byte(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return []byte(n.Value)
		}
	}
	return quoted(n.Value)
}

// quoted returns a JSON text without escapes that only HTML needs.
func quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always encodes
	return bytes.TrimRight(b.Bytes(), "\n")
}

// isTabbed reports whether a line, from 1, is indented by a tab, which YAML forbids: its readers only say that they
// found a character.
func isTabbed(text string, line int) bool {
	lines := strings.SplitN(text, "\n", line+1)
	if line < 1 || line > len(lines) {
		return false
	}
	in := lines[line-1]
	return strings.Contains(in[:len(in)-len(strings.TrimLeft(in, " \t"))], "\t")
}
