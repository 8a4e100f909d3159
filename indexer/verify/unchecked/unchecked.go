// Package unchecked lists what a check of the index could not compare, and why.
//
// A check asks endpoints about thousands of blocks, and one endpoint that fails leaves many of
// them uncompared for one reason. The list has one line for each reason, with the blocks that
// share it, and it is bounded.
package unchecked

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"repute"
)

// errNoView is the reason where a contract or a node does not answer a view.
var errNoView = errors.New("a view that tells it is not answered")

// maxReasons bounds how many reasons are listed; one is enough to say that not
// everything was checked.
const maxReasons = 100

// List collects what could not be checked. A reason that many blocks share is listed once. The zero
// List is empty.
type List struct {
	list  []*entry
	kinds []repute.EventKind // whose views were not answered
}

// entry is what one reason left unchecked.
type entry struct {
	what   string
	why    string
	ranges repute.BlockRange // from the first to the last of the blocks
	blocks uint64            // how many they are; 0: it is not about blocks
}

// Add lists a subject that is not a range of blocks, with the reason.
func (l *List) Add(what string, err error) {
	for _, o := range l.list {
		if o.what == what && o.blocks == 0 && o.why == err.Error() {
			return
		}
	}
	if len(l.list) < maxReasons {
		l.list = append(l.list, &entry{what: what, why: err.Error()})
	}
}

// Blocks adds a range of blocks. An entry with the same subject and reason is widened to include it, so
// that its range may span blocks that were checked.
func (l *List) Blocks(what string, r repute.BlockRange, err error) {
	why := reason(err, r)
	for _, o := range l.list {
		if o.what == what && o.blocks > 0 && o.why == why {
			o.ranges = repute.BlockRange{From: min(o.ranges.From, r.From), To: max(o.ranges.To, r.To)}
			o.blocks += r.To - r.From + 1
			return
		}
	}
	if len(l.list) < maxReasons {
		l.list = append(l.list, &entry{what: what, why: why, ranges: r, blocks: r.To - r.From + 1})
	}
}

// reason is an error without what differs from block to block: its number, and for how
// long an endpoint that failed is left alone.
func reason(err error, r repute.BlockRange) string {
	why := strings.ReplaceAll(err.Error(), fmt.Sprintf("block %d: ", r.From), "")
	if _, last, found := strings.Cut(why, ", the last: "); found {
		return last
	}
	return why
}

// Views lists kinds of events whose state could not be read, because a view was not answered.
func (l *List) Views(kinds []repute.EventKind) {
	l.kinds = slices.Compact(slices.Sorted(slices.Values(append(l.kinds, kinds...))))
}

// Texts returns one line for each reason.
func (l *List) Texts() (out []string) {
	for _, o := range l.list {
		out = append(out, o.String())
	}
	if len(l.kinds) > 0 {
		names := make([]string, len(l.kinds))
		for i, k := range l.kinds {
			names[i] = k.String()
		}
		out = append(out, fmt.Sprintf("state of %s: %v", strings.Join(names, ", "), errNoView))
	}
	return out
}

// String names the blocks as one range where they are one.
func (o *entry) String() string {
	what, r := strings.TrimSpace(o.what), o.ranges
	switch {
	case o.blocks == 1:
		what += fmt.Sprintf(" block %d", r.From)
	case o.blocks == r.To-r.From+1:
		what += fmt.Sprintf(" blocks %d to %d", r.From, r.To)
	case o.blocks > 0:
		what += fmt.Sprintf(" %d of blocks %d to %d", o.blocks, r.From, r.To)
	}
	return strings.TrimSpace(what) + ": " + o.why
}
