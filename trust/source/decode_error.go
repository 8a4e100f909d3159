package source

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute"
)

// decodeError converts an error of the YAML decoder to repute.ErrInvalid with the name of the first wrong field. Only
// the first of several errors is told, because later ones often follow from it.
func decodeError(err error, text []byte) error {
	const hint = "docs/reference/sources.md lists the members of the file"
	var list *yaml.LoadErrors
	one := &yaml.LoadError{}
	switch {
	case errors.As(err, &list) && len(list.Errors) > 0:
		one = list.Errors[0]
	case !errors.As(err, &one):
		return repute.Invalid("sources", err.Error(), hint)
	}
	unknown := regexp.MustCompile(`^field (\S+) not found in type \S+$`)
	reason := unknown.ReplaceAllString(one.Message, `there is no member "$1"`)
	var root yaml.Node
	_ = yaml.Unmarshal(text, &root) // root stays empty when text is no YAML: the error then names only the line
	return repute.Invalid(cmp.Or(fieldAt(&root, one.Mark, ""), "sources"),
		fmt.Sprintf("line %d: %s", one.Mark.Line, reason), hint)
}

// fieldAt returns the path of the field whose key or value begins at a position of the file, such as sources[0].weight;
// "" where there is none.
func fieldAt(n *yaml.Node, at yaml.Mark, path string) string {
	for i, child := range n.Content {
		below := path
		switch n.Kind {
		case yaml.SequenceNode:
			below = fmt.Sprintf("%s[%d]", path, i)
		case yaml.MappingNode:
			below = strings.TrimPrefix(path+"."+n.Content[i-i%2].Value, ".")
		}
		if n.Kind != yaml.DocumentNode && child.Line == at.Line && child.Column == at.Column {
			return below
		}
		if found := fieldAt(child, at, below); found != "" {
			return found
		}
	}
	return ""
}
