package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute"
)

// maxConfig bounds the file, in bytes.
const maxConfig = 1 << 20

// readFile sets what the YAML file sets. Errors are repute.ErrInvalid and name line
// and key.
func readFile(path string, c *Config) error {
	file, err := os.Open(path)
	if err != nil {
		return repute.Invalid("config", err.Error(), "give a readable YAML file")
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	switch {
	case err != nil:
		return repute.Invalid("config", err.Error(), "give a readable YAML file")
	case len(text) > maxConfig:
		return repute.Invalid("config", path+" is larger than 1 MiB",
			"give the YAML file that docs/reference/configuration.md describes")
	}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	dec.KnownFields(true)
	if err := dec.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return repute.Invalid("config", fmt.Sprintf("%s: %s", path, mistakes(err, string(text))),
			"docs/reference/configuration.md lists the keys and their values")
	}
	return nil
}

// mistakes says in the words of the file what its decoder says in those of Go. All mistakes of the file are named at
// once, as far as the decoder finds them.
func mistakes(err error, text string) string {
	var list *yaml.LoadErrors
	if !errors.As(err, &list) {
		var one *yaml.LoadError
		if !errors.As(err, &one) {
			return err.Error()
		}
		list = &yaml.LoadErrors{Errors: []*yaml.LoadError{one}}
	}
	var root yaml.Node
	_ = yaml.Unmarshal([]byte(text), &root) // without it lines alone are named
	said := make([]string, len(list.Errors))
	for i, e := range list.Errors {
		said[i] = fmt.Sprintf("line %d: %s", e.Mark.Line, inWords(e.Message, keyAt(&root, e.Mark, "")))
	}
	return strings.Join(said, "; ")
}

// inWords rewrites one message about the key at its place. A message in another form, as of a later version of the
// decoder, is returned as it is.
func inWords(message, key string) string {
	unknown := regexp.MustCompile(`^field (\S+) not found in type \S+$`)
	if m := unknown.FindStringSubmatch(message); m != nil {
		return "there is no key " + m[1]
	}
	other := regexp.MustCompile("^cannot (?:construct|unmarshal) !!(\\S+)(?: `.*`)? (?:into|as a) (.+)$")
	if m := other.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s is %s, wanted is %s", cmp.Or(key, "the value"), kindOf(m[1]), wanted(m[2]))
	}
	return message
}

// kindOf names a YAML tag.
func kindOf(tag string) string {
	names := map[string]string{"str": "text", "int": "a number", "float": "a number", "bool": "true or false",
		"seq": "a list",
		"map": "a group of keys", "null": "empty", "timestamp": "a time"}
	return cmp.Or(names[tag], "of another kind")
}

// wanted names a Go type. The name is that of the decoder's message, and must not reach the operator.
func wanted(name string) string {
	switch {
	case strings.HasPrefix(name, "[]config."):
		return "a list of entries, each a group of keys"
	case strings.HasPrefix(name, "[]"):
		return "a list"
	case strings.HasPrefix(name, "uint"), strings.HasPrefix(name, "*uint"):
		return "a whole number, 0 or more"
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "float"):
		return "a number"
	case name == "time.Duration":
		return "a duration such as 10s"
	case strings.HasPrefix(name, "config."), strings.HasPrefix(name, "map["):
		return "a group of keys"
	}
	return "text"
}

// keyAt names what stands at a place of the file: chains[0].rpc. Empty for a key.
func keyAt(n *yaml.Node, at yaml.Mark, path string) string {
	for i, child := range n.Content {
		below := path
		switch {
		case n.Kind == yaml.SequenceNode:
			below = fmt.Sprintf("%s[%d]", path, i)
		case n.Kind == yaml.MappingNode && i%2 == 0:
			continue // a key
		case n.Kind == yaml.MappingNode:
			below = strings.TrimPrefix(path+"."+n.Content[i-1].Value, ".")
		}
		if child.Line == at.Line && child.Column == at.Column && n.Kind != yaml.DocumentNode {
			return below
		}
		if found := keyAt(child, at, below); found != "" {
			return found
		}
	}
	return ""
}
