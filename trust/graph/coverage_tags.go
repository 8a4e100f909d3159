package graph

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"repute"
	"repute/trust/rating"
)

// unreadTags counts the records whose tags are not read, by tag and reason. There are no more tags than ratings: some
// hundred bytes for each rating in the worst case, when all have another tag. A bound of its own would make the counts
// depend on the order of the ratings.
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

// most returns the most frequent tags, the most frequent first. It holds no more than it lists.
func (u unreadTags) most() []repute.UnreadTag {
	out := make([]repute.UnreadTag, 0, listedUnreadTags+1)
	for key, n := range u {
		if len(out) == listedUnreadTags && n < out[listedUnreadTags-1].Records {
			continue
		}
		tag := repute.UnreadTag{Tag: shownTag(key.tag), Reason: string(key.reason), Records: n}
		place, _ := slices.BinarySearchFunc(out, tag, func(a, b repute.UnreadTag) int {
			return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Reason, b.Reason))
		})
		out = slices.Insert(out, place, tag)
		out = out[:min(len(out), listedUnreadTags)]
	}
	return out
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
