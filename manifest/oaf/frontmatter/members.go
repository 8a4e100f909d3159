package frontmatter

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute/manifest/oaf/problem"
)

// Members are the members of the objects of a kind of file, by the JSON pointer of the object, in which * stands for
// one element: an entry of a list, or a label. An object that no pointer of the table names may have any member.
type Members map[string]Known

// Known are the members of one object.
type Known struct {
	Names []string
	// Open says that the format leaves other members to the author. They are reported only where they are nearly one of
	// Names.
	Open bool
	// Restricts names the members that restrict the agent: one that is nearly its name would restrict nothing, and is
	// an error.
	Restricts []string
}

// of returns the members of an object; ok is false for an open object.
func (m Members) of(pointer string) (k Known, ok bool) {
	if k, ok = m[pointer]; ok {
		return k, true
	}
	for pattern, k := range m {
		if matched, _ := path.Match(pattern, pointer); matched { // the patterns are the program's own
			return k, true
		}
	}
	return Known{}, false
}

// Unknown reports the members of a document that its objects do not have by the table. The hint names the known member
// that is most like it. It returns them as paths with dots, such as config.tools.deny, in the order of the file.
func (o *Object) Unknown(code string, known Members) []string {
	if o == nil {
		return nil
	}
	c := &memberCheck{doc: o.doc, code: code, known: known}
	c.value(o.doc.root, "")
	return c.found
}

// memberCheck compares the members of a document with a table.
type memberCheck struct {
	doc   *document
	code  string
	known Members
	found []string
}

// value checks a value, and the objects in it. The tree is bounded, also with its aliases written out.
func (c *memberCheck) value(n *yaml.Node, at string) {
	n = target(n)
	switch n.Kind {
	case yaml.SequenceNode:
		for i, child := range n.Content {
			c.value(child, at+"/"+strconv.Itoa(i))
		}
	case yaml.MappingNode:
		known, closed := c.known.of(at)
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := target(n.Content[i])
			if key.Kind == yaml.ScalarNode && closed && !slices.Contains(known.Names, key.Value) {
				c.unknown(key, at, known)
			} else {
				c.value(n.Content[i+1], at+"/"+pointer(key.Value))
			}
		}
	}
}

// unknown reports a member that its object does not have.
func (c *memberCheck) unknown(key *yaml.Node, at string, known Known) {
	near := nearest(key.Value, known)
	hint := "write " + near
	switch {
	case near != "":
	case known.Open:
		return
	case len(known.Names) > maxListed:
		hint = problem.Hint(c.code)
	default:
		hint = "use one of " + strings.Join(known.Names, ", ")
	}
	code := c.code
	if near != "" && slices.Contains(known.Restricts, near) {
		code = problem.CodeRestriction
	}
	c.doc.list.Suggest(code, c.doc.place(at+"/"+pointer(key.Value), key.Line), hint, "%.80q is no member%s", key.Value,
		within(at))
	c.found = append(c.found, dotted(at+"/"+pointer(key.Value)))
}

// maxListed is the number of known members up to which a hint lists all of them.
const maxListed = 10

// within returns the object of a member for messages.
func within(at string) string {
	if at == "" {
		return " of the format"
	}
	return " of " + dotted(at)
}

// dotted returns a JSON pointer as a path with dots, as people write it.
func dotted(pointer string) string {
	return strings.NewReplacer("/", ".", "~1", "/", "~0", "~").Replace(strings.TrimPrefix(pointer, "/"))
}

// nearest returns the known member that a name is most likely meant to be; "" where none is like it. Names of one
// member differ in case, in separators and in their ends. Those with another beginning are often the opposite, such as
// disallowed and allowed.
func nearest(name string, known Known) (near string) {
	plain := folded(name)
	best := len(plain) + 1
	for _, candidate := range known.Names {
		other := folded(candidate)
		most := max(len(plain), len(other)) / 2
		if known.Open {
			most = min(most, 2) // what the author may name freely is seldom a misspelling
		}
		if plain == "" || len(plain) > 80 || plain[0] != other[0] {
			continue
		}
		if d := distance(plain, other); d <= most && d < best {
			near, best = candidate, d
		}
	}
	return near
}

// Nearest returns the name of a list that another name is most likely meant to be; "" where none is like it.
func Nearest(name string, names []string) string {
	return nearest(name, Known{Names: names, Open: true})
}

// folded returns a name without what spellings of one name differ in.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// distance returns the number of characters to insert, remove or replace to make one text of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0] // of the row above
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
