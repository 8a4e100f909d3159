package frontmatter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Map is an object that is being written, in block style: some readers know no other.
type Map struct{ node yaml.Node }

// NewMap returns an object without members.
func NewMap() *Map { return &Map{node: yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}} }

// Len returns the number of members.
func (m *Map) Len() int { return len(m.node.Content) / 2 }

// add appends a member. Members are written in the order in which they are added, so that equal agents make equal
// files.
func (m *Map) add(key string, value *yaml.Node) *Map {
	m.node.Content = append(m.node.Content, textNode(key), value)
	return m
}

// Text adds a text unless it is empty.
func (m *Map) Text(key, value string) *Map {
	if value == "" {
		return m
	}
	return m.add(key, textNode(value))
}

// Always adds a text, even an empty one.
func (m *Map) Always(key, value string) *Map { return m.add(key, textNode(value)) }

// textNode returns a text. The library quotes it where YAML would read something else. Texts with several lines are
// written as such only where no reader can mistake them.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.Contains(s, "\n") && isPlainBlock(s):
		n.Style = yaml.LiteralStyle
	case needsQuotes(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// isPlainBlock reports whether a text of several lines survives every reader as a literal block.
func isPlainBlock(s string) bool {
	if strings.HasPrefix(s, "\n") || strings.HasPrefix(s, " ") || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for _, line := range strings.Split(s, "\n") {
		if line != strings.TrimRight(line, " \t") {
			return false
		}
	}
	return !strings.ContainsFunc(s, isControl)
}

// needsQuotes reports whether a text is written in quotes: readers of YAML 1.1 and 1.2 differ in what they take for a
// number, a date or a bool.
func needsQuotes(s string) bool {
	if s == "" || s != strings.TrimSpace(s) || strings.ContainsFunc(s, isControl) {
		return true
	}
	if strings.ContainsRune("!&*-?|>@%`'\"#{}[],:=~.+<0123456789", rune(s[0])) {
		return true
	}
	if strings.Contains(s, ": ") || strings.Contains(s, " #") || strings.HasSuffix(s, ":") {
		return true
	}
	switch strings.ToLower(s) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return true
	}
	return false
}

// isControl reports whether a character needs quotes: readers of YAML refuse it elsewhere, or take it for a line end.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff ||
		r > 0xffff
}

// Texts adds a list of texts unless it is nil.
func (m *Map) Texts(key string, values []string) *Map {
	if values == nil {
		return m
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if len(values) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, v := range values {
		n.Content = append(n.Content, textNode(v))
	}
	return m.add(key, n)
}

// Bool adds true, and nothing for false.
func (m *Map) Bool(key string, value bool) *Map {
	if !value {
		return m
	}
	return m.add(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
}

// Number adds a number unless it is 0.
func (m *Map) Number(key string, value float64) *Map {
	if value == 0 {
		return m
	}
	return m.Float(key, &value)
}

// Float adds a number unless it is nil.
func (m *Map) Float(key string, value *float64) *Map {
	if value == nil {
		return m
	}
	text := strconv.FormatFloat(*value, 'f', -1, 64)
	tag := "!!int"
	if strings.Contains(text, ".") {
		tag = "!!float"
	}
	return m.add(key, &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text})
}

// Map adds an object unless it has no members.
func (m *Map) Map(key string, value *Map) *Map {
	if value.Len() == 0 {
		return m
	}
	return m.add(key, &value.node)
}

// Maps adds a list of objects unless it is empty.
func (m *Map) Maps(key string, values []*Map) *Map {
	if len(values) == 0 {
		return m
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, v := range values {
		n.Content = append(n.Content, &v.node)
	}
	return m.add(key, n)
}

// TextMap adds an object of texts, ordered by name, unless it is empty.
func (m *Map) TextMap(key string, values map[string]string) *Map {
	in := NewMap()
	for _, k := range slices.Sorted(maps.Keys(values)) {
		in.Always(k, values[k])
	}
	return m.Map(key, in)
}

// JSON adds a value that is JSON unless it is nil.
func (m *Map) JSON(key string, value json.RawMessage) *Map {
	if value == nil {
		return m
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	n, err := (&jsonReader{dec: dec, text: string(value)}).value(0)
	if err != nil { // not JSON, or too deep: kept as the text that it is
		return m.Text(key, string(value))
	}
	return m.add(key, restyled(n))
}

// restyled gives the texts of a tree the style that textNode gives.
func restyled(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.ScalarNode {
		if n.Tag == "!!str" {
			return textNode(n.Value)
		}
		return n
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	for i, child := range n.Content {
		n.Content[i] = restyled(child)
	}
	return n
}

// Members adds all members of a map of JSON, ordered by name.
func (m *Map) Members(values map[string]json.RawMessage) *Map {
	for _, k := range slices.Sorted(maps.Keys(values)) {
		m.JSON(k, values[k])
	}
	return m
}

// YAML returns the object as YAML with two spaces of indentation.
func (m *Map) YAML() (string, error) {
	if m.Len() == 0 {
		return "{}\n", nil
	}
	// Lines are never folded: some readers of frontmatter take one line for one member.
	b, err := yaml.Dump(&m.node, yaml.WithV3Defaults(), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return string(b), nil
}

// JSON returns a file of indented JSON without escapes that only HTML needs.
func JSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return b.Bytes(), err
}

// OneLine returns a text with all white space replaced by single spaces.
func OneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
