package verify

import (
	"fmt"
	"slices"
	"strings"

	"repute"
)

// maxUnchecked bounds how many reasons are listed; one is enough to say that not
// everything was checked.
const maxUnchecked = 100

// leftovers collects what could not be checked. A reason that many blocks share is listed once.
type leftovers struct {
	list  []*leftover
	kinds []repute.EventKind // whose views were not answered
}

// leftover is what one reason left unchecked.
type leftover struct {
	what   string
	why    string
	ranges repute.BlockRange // from the first to the last of the blocks
	blocks uint64            // how many they are; 0: it is not about blocks
}

func (l *leftovers) add(what string, err error) {
	for _, o := range l.list {
		if o.what == what && o.blocks == 0 && o.why == err.Error() {
			return
		}
	}
	if len(l.list) < maxUnchecked {
		l.list = append(l.list, &leftover{what: what, why: err.Error()})
	}
}

// blocks adds blocks, to those before that have the same reason.
func (l *leftovers) blocks(what string, r repute.BlockRange, err error) {
	why := reason(err, r)
	for _, o := range l.list {
		if o.what == what && o.blocks > 0 && o.why == why {
			o.ranges = repute.BlockRange{From: min(o.ranges.From, r.From), To: max(o.ranges.To, r.To)}
			o.blocks += r.To - r.From + 1
			return
		}
	}
	if len(l.list) < maxUnchecked {
		l.list = append(l.list, &leftover{what: what, why: why, ranges: r, blocks: r.To - r.From + 1})
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

// views adds kinds of which a view was not answered.
func (l *leftovers) views(kinds []repute.EventKind) {
	l.kinds = slices.Compact(slices.Sorted(slices.Values(append(l.kinds, kinds...))))
}

// texts returns one line for each reason.
func (l *leftovers) texts() (out []string) {
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
func (o *leftover) String() string {
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
