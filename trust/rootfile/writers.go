package rootfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"repute"
	"repute/store/rootdb"
	"repute/trust/rating"
)

// writersKey finds the list of a file of reviewed writers.
var writersKey = regexp.MustCompile(`(?m)^(?:writers:|[{\s]*"writers"\s*:)`)

// writerEntry is a reviewed writer of a file.
type writerEntry struct {
	Chain    string     `yaml:"chain"`
	Address  string     `yaml:"address"`
	Operator string     `yaml:"operator"`
	Evidence []evidence `yaml:"evidence"`
	Weight   string     `yaml:"weight"`
	Expires  string     `yaml:"expires"`
	Tags     yaml.Node  `yaml:"tags"`
}

// evidence is where anybody can check what is said of a writer.
type evidence struct {
	Link   string `yaml:"link"`
	Date   string `yaml:"date"`
	Method string `yaml:"method"`
}

// writerDefault is the weight of a writer whose entry gives none.
const writerDefault = "0.5"

// readWriters reads a file of reviewed writers as roots of class B. The error holds one error per bad entry, ten at
// most.
func readWriters(in io.Reader, o Options) ([]Root, error) {
	text, err := readYAML(in, "writers", "a shorter list of writers")
	if err != nil {
		return nil, err
	}
	var file struct {
		Version string      `yaml:"version"`
		Method  string      `yaml:"method"`
		Writers []yaml.Node `yaml:"writers"`
	}
	if err := decodeYAML(text, &file); err != nil {
		return nil, repute.Invalid("file", err.Error(), "YAML as docs/how-to/roots.md describes it")
	}
	var c collector[Root]
	for i := range file.Writers {
		root, err := readWriter(&file.Writers[i], o)
		key := fmt.Sprintf("writer %s of chain %d", root.Address.Hex(), root.ChainID)
		if !c.add(file.Writers[i].Line, root, key, err) {
			break
		}
	}
	return c.made, errors.Join(c.wrong...)
}

// decodeYAML reads one document and refuses members that mean nothing.
func decodeYAML(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	err := d.Decode(into)
	if errors.Is(err, io.EOF) {
		return errors.New("is empty")
	}
	return err
}

// readWriter reads one entry. repute.ErrInvalid names the member.
func readWriter(n *yaml.Node, o Options) (root Root, err error) {
	text, err := yaml.Marshal(n)
	if err != nil {
		return root, repute.Invalid("entry", err.Error(), "a group of members")
	}
	var w writerEntry
	if err := decodeYAML(text, &w); err != nil {
		return root, repute.Invalid("entry", err.Error(),
			"chain, address, operator, evidence, weight, expires and tags")
	}
	if w.Weight == "" {
		w.Weight = writerDefault
	}
	e := entry{n.Line, map[string]string{"chain": w.Chain, "address": w.Address, "weight": w.Weight,
		"expires": w.Expires}}
	if e.fields["reason"], err = w.reason(); err != nil {
		return root, err
	}
	root.Line = n.Line
	if err := e.root(&root, o); err != nil {
		return root, err
	}
	if root.Expires.IsZero() {
		return root, repute.Invalid("expires", "is missing", "a day within a year, such as 2027-06-30")
	}
	root.Class = repute.ReviewedWriter
	if root.Rules, err = w.rules(root, o); err != nil {
		return root, err
	}
	return root, rootdb.CheckRoot(root.TrustRoot)
}

// reason says in one sentence who writes and where that can be checked.
func (w *writerEntry) reason() (string, error) {
	if strings.TrimSpace(w.Operator) == "" {
		return "", repute.Invalid("operator", "is missing", "who runs the platform")
	}
	if len(w.Evidence) == 0 {
		return "", repute.Invalid("evidence", "is missing", "one entry or more with link, date and method")
	}
	var parts []string
	for i, e := range w.Evidence {
		field := fmt.Sprintf("evidence[%d]", i)
		if !strings.HasPrefix(e.Link, "https://") {
			return "", repute.Invalid(field+".link", fmt.Sprintf("%.80q is no link", e.Link),
				"a URL that begins with https://")
		}
		if _, err := time.Parse(time.DateOnly, e.Date); err != nil {
			return "", repute.Invalid(field+".date", fmt.Sprintf("%.40q is no day", e.Date),
				"when it was checked, such as 2026-11-24")
		}
		if strings.TrimSpace(e.Method) == "" {
			return "", repute.Invalid(field+".method", "is missing", "how it was checked")
		}
		parts = append(parts, fmt.Sprintf("%s (%s, %s)", e.Link, e.Date, strings.TrimSpace(e.Method)))
	}
	return strings.TrimSpace(w.Operator) + ": " + strings.Join(parts, "; "), nil
}

// rules returns the writer's rules as JSON, after a check against the table of tags.
func (w *writerEntry) rules(root Root, o Options) (string, error) {
	if w.Tags.Kind == 0 {
		return "", nil
	}
	var tree any
	if err := w.Tags.Decode(&tree); err != nil {
		return "", repute.Invalid("tags", err.Error(), "a list of rules as in trust/rating/tags.json")
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return "", repute.Invalid("tags", err.Error(), "a list of rules as in trust/rating/tags.json")
	}
	rules, err := rating.ParseRules(root.Address, string(text))
	if err != nil {
		return "", err
	}
	params, err := o.params()
	if err != nil {
		return "", err
	}
	if _, err := params.WithWriters(rules); err != nil {
		return "", err
	}
	return string(text), nil
}
