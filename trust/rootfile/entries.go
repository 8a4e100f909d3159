package rootfile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute"
)

const (
	// maxYAML bounds a YAML file, in bytes; files of one JSON object per line have no end.
	maxYAML = 16 << 20
	// maxLine bounds a line of JSON, in bytes.
	maxLine = 64 << 10
)

// taker is given each entry with its line, or what is wrong with it, until it has enough. It returns false after
// mostErrors wrong entries, and the rest of the file is then not read.
type taker func(e entry, wrong error) (more bool)

// begin returns a reader of a file and its first bytes, which the reader still has. An error of the reader is returned
// even where it has given some bytes: a file that was cut short MUST NOT pass for a whole one.
func begin(r io.Reader) (in *bufio.Reader, head []byte, err error) {
	in = bufio.NewReaderSize(r, maxLine)
	if head, err = in.Peek(maxLine); err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read the file: %w", err)
	}
	return in, head, nil
}

// entries finds out by its first bytes how a file is written. The error is about the file as a whole. A byte order mark
// at the beginning is skipped.
func entries(in io.Reader, head []byte, list string, fields []string, take taker) error {
	line, _, _ := bytes.Cut(bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\ufeff"))), []byte("\n"))
	if isLine(line, list) {
		return jsonLines(in, fields, take)
	}
	text, err := readYAML(in, list, "give one JSON object per line instead of YAML")
	if err != nil {
		return err
	}
	return yamlList(text, list, fields, take)
}

// readYAML reads the rest of a file with a list. hint says what to do with one that is too large.
func readYAML(in io.Reader, list, hint string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxYAML+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", list, err)
	case len(text) > maxYAML:
		return nil, repute.Invalid("file", "is larger than 16 MiB", hint)
	}
	return text, nil
}

// isLine reports whether the first line is an entry in JSON, not the begin of a YAML file. JSON over many lines is read
// as YAML, of which it is a part.
func isLine(line []byte, list string) bool {
	if !bytes.HasPrefix(line, []byte("{")) {
		return false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(line, &members) != nil {
		return !bytes.Equal(bytes.TrimSpace(line), []byte("{")) // a broken line, or JSON over many lines
	}
	return members[list] == nil
}

// jsonLines reads a file of any length, one object in each line. Empty lines are left out. Memory is that of one line.
// Lines count from 1, with empty ones.
func jsonLines(in io.Reader, fields []string, take taker) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(nil, maxLine)
	n := 0
	for scan.Scan() {
		n++
		line := bytes.TrimSpace(bytes.TrimPrefix(scan.Bytes(), []byte("\ufeff")))
		if len(line) == 0 {
			continue
		}
		members, err := members(line, fields)
		if !take(entry{n, members}, err) {
			return nil
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return repute.Invalid(fmt.Sprintf("line %d", n+1), "is longer than 64 KiB", "one JSON object per line")
	}
	return scan.Err()
}

// members reads a JSON object of texts and numbers. The decoder's tokens are read one by one, because a map would hide
// a member that is given twice, and a struct would take other capitals.
func members(line []byte, fields []string) (map[string]string, error) {
	bad := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("is cut short")
		}
		return repute.Invalid("entry", err.Error(),
			`one JSON object per line, e.g. {"chain":8453,"address":"0x…","reason":"…"}`)
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, bad(errors.New("is no JSON object"))
	}
	out := map[string]string{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, bad(err)
		}
		value, err := dec.Token()
		if err != nil {
			return nil, bad(err)
		}
		if err := put(out, fields, key.(string), value); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return nil, bad(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, bad(errors.New("has something behind the object"))
	}
	return out, nil
}

// put refuses members that mean nothing or stand twice. null is as if the member was absent; it still counts as unknown
// where it is.
func put(out map[string]string, fields []string, key string, value any) error {
	if !slices.Contains(fields, key) {
		return repute.Invalid(fmt.Sprintf("%.50q", key), "is no member of an entry",
			"any of "+strings.Join(fields, ", "))
	}
	if _, twice := out[key]; twice {
		return repute.Invalid(key, "stands twice in the entry", "keep one")
	}
	switch v := value.(type) {
	case nil:
	case string:
		out[key] = v
	case json.Number:
		out[key] = v.String()
	default:
		return repute.Invalid(key, "is neither text nor a number", "write it in quotes")
	}
	return nil
}

// yamlList reads a list of entries, which may be a member of the file beside version and
// method.
func yamlList(text []byte, list string, fields []string, take taker) error {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return repute.Invalid("file", err.Error(),
			"YAML as docs/how-to/roots.md describes it, or one JSON object per line")
	}
	if len(doc.Content) == 0 {
		return nil
	}
	node, err := listOf(doc.Content[0], list)
	if err != nil || node == nil {
		return err
	}
	for _, n := range node.Content {
		fields, err := mapping(n, fields)
		if !take(entry{n.Line, fields}, err) {
			return nil
		}
	}
	return nil
}

// listOf finds the list of entries; nil where there is none. Aliases and merge keys of YAML are not followed: they are
// no scalars and are refused.
func listOf(n *yaml.Node, list string) (*yaml.Node, error) {
	if n.Kind == yaml.SequenceNode {
		return n, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, repute.Invalid("file", "is no list of entries", "see docs/how-to/roots.md")
	}
	var found *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value == list && (value.Kind == yaml.SequenceNode || value.Tag == "!!null"):
			found = value
		case key.Value == "version" || key.Value == "method":
		default:
			return nil, repute.Invalid(fmt.Sprintf("line %d, %.50q", key.Line, key.Value),
				"is unknown here, or no list",
				"version, method and a list "+list)
		}
	}
	if found == nil {
		return nil, repute.Invalid("file", "has no list "+list, "see docs/how-to/roots.md")
	}
	return found, nil
}

// mapping takes scalars as they are written: YAML would make a number of an address.
func mapping(n *yaml.Node, fields []string) (map[string]string, error) {
	if n.Kind != yaml.MappingNode {
		return nil, repute.Invalid("entry", "is no group of members", "any of "+strings.Join(fields, ", "))
	}
	out := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		var value any = n.Content[i+1].Value
		switch {
		case n.Content[i+1].Kind != yaml.ScalarNode:
			value = true // neither text nor number
		case n.Content[i+1].Tag == "!!null":
			value = nil
		}
		if err := put(out, fields, n.Content[i].Value, value); err != nil {
			return nil, err
		}
	}
	return out, nil
}
