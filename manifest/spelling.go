package manifest

import (
	"slices"
	"strings"

	"repute/internal/jsonwalk"
)

// longName is the length from which a member's name is long enough that another one
// so like it is a mistake, even beside the right one.
const longName = 8

// misspelled reports members nobody knows whose names look like known ones. Short names
// resemble others by chance, so they count only where the right one is missing.
func (o *object) misspelled(known []string, others ...string) {
	plain := make([]string, len(known)) // once for all members, of which a hostile document has many
	for i, k := range known {
		plain[i] = plainName(k)
	}
	for _, m := range o.members {
		if m.used || o.r.full() || slices.Contains(known, m.name) || slices.Contains(others, m.name) {
			continue
		}
		if right := nearest(m.name, known, plain); right != "" && (len(right) >= longName || !o.has(right)) {
			o.r.add(CodeMisspelled, o.at(m.name), "looks like %q, which it is not", right)
		}
	}
}

// nearest is the known name that another one is like, "" without. plain are the known names by plainName.
func nearest(name string, known, plain []string) string {
	written := plainName(name)
	for i, k := range known {
		most := 1
		if len(k) >= longName {
			most = 2
		}
		if isNear(written, plain[i], most) {
			return k
		}
	}
	return ""
}

// separators are what people write between the words of a name, or leave out.
var separators = strings.NewReplacer("_", "", "-", "", " ", "")

// plainName leaves out what people write in different ways.
func plainName(s string) string {
	return separators.Replace(strings.ToLower(jsonwalk.Cut(s, maxShort)))
}

// isNear tells whether at most this many letters were left out, added, changed or
// swapped with their neighbor.
func isNear(a, b string, most int) bool {
	if len(a) > len(b)+most || len(b) > len(a)+most {
		return false
	}
	var before, last []int
	for i := 0; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b) && i == 0; j++ {
			row[j] = j
		}
		for j := 1; j <= len(b) && i > 0; j++ {
			row[j] = min(last[j], row[j-1]) + 1
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(row[j], change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)] <= most
}
