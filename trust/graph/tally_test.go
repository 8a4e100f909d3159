package graph

import (
	"fmt"
	"math"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/rating"
)

// Records keep their age to the minute, and nothing that is written on a chain is out of their range.
func TestRecordAges(t *testing.T) {
	for age, want := range map[int64]int{-5: 0, 59: 0, 60: 1, 90 * 24 * 60 * 60: 90 * 24 * 60,
		math.MaxInt64: maxMinutes} {
		var records tally
		records.leave(records.add(repute.TokenID{}, 0, common.Address{2}, new(uint32), age), rating.ReasonRange)
		records.sort()
		if got := records.parts[0].records[0]; got.minutes() != want ||
			got.reason() != records.codes[rating.ReasonRange] {
			t.Errorf("%d seconds: %d minutes, reason %d", age, got.minutes(), got.reason())
		}
	}
}

func TestUnreadTagsAreBounded(t *testing.T) {
	t.Parallel()
	var u unreadTags
	for i := range maxUnreadTags + 5 {
		u.add(fmt.Sprint(i), rating.ReasonUnknownTag)
	}
	u.add("0", rating.ReasonUnknownTag)
	if len(u.counts) != maxUnreadTags || u.most()[0] != (repute.UnreadTag{Tag: "0", Reason: "unknown-tag",
		Records: 2}) {
		t.Errorf("%d tags, first %+v", len(u.counts), u.most()[0])
	}
}
