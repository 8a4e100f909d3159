package graph

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"repute"
	"repute/trust/rating"
)

// unreadTags counts the records whose tags are not read, by tag and reason. There are no more tags than ratings. A
// bound of its own would make the counts depend on the order of the ratings.
type unreadTags map[unreadTag]int64

// unreadTag identifies a tag that is not read for one reason.
type unreadTag struct {
	tag    string
	reason rating.Reason
}

// listedUnreadTags is how many tags Coverage lists.
const listedUnreadTags = 10

// add counts a record that does not count for a reason. Only reasons that come from its tag are counted.
func (u unreadTags) add(tag string, reason rating.Reason) {
	if reason == rating.ReasonUnknownTag || reason == rating.ReasonChannel {
		u[unreadTag{tag, reason}]++
	}
}

// most returns the most frequent tags, the most frequent first.
func (u unreadTags) most() []repute.UnreadTag {
	out := make([]repute.UnreadTag, 0, len(u))
	for key, n := range u {
		out = append(out, repute.UnreadTag{Tag: shownTag(key.tag), Reason: string(key.reason), Records: n})
	}
	slices.SortFunc(out, func(a, b repute.UnreadTag) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Clone(out[:min(len(out), listedUnreadTags)])
}

// shownTag replaces unprintable characters of a tag, because anybody can write any bytes.
func shownTag(tag string) string {
	if tag == rating.UnreadTag {
		return repute.LongTag
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, tag)
}
