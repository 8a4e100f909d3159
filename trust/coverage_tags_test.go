package trust

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// Coverage lists the most frequent tags that are not read, each with the number of its records, and adds up to the
// reasons.
func TestCoverageListsUnreadTags(t *testing.T) {
	t.Parallel()
	p := must(rating.DefaultParams())
	r := graph.NewReader(newWorld().evidence().Block, nil, nil, p)
	r.Agent(repute.TokenID{}, 0, address(5000), common.Address{})
	write := func(tag string, times int) {
		for range times {
			r.Rating(repute.TokenID{}, amountRow(0, tag, 1000))
		}
	}
	write("starred", 50)
	write("miner-vouch", 4)
	write("ni\x00ce\xff", 3)
	write(rating.UnreadTag, 2)
	for i := range 12 {
		write(fmt.Sprintf("x%02d", i), 1)
	}
	got, _ := r.Coverage(r.Build().Walk([]flow.Root{}, p.Walk))
	want := []repute.UnreadTag{{Tag: "miner-vouch", Reason: "other-channel", Records: 4},
		{Tag: "ni\ufffdce\ufffd", Reason: "unknown-tag", Records: 3},
		{Tag: repute.LongTag, Reason: "unknown-tag", Records: 2}}
	for i := range 7 {
		want = append(want, repute.UnreadTag{Tag: fmt.Sprintf("x%02d", i), Reason: "unknown-tag", Records: 1})
	}
	if !reflect.DeepEqual(got.Tags, want) {
		t.Errorf("%+v", got.Tags)
	}
	if got.Left["unknown-tag"] != 17 || got.Left["other-channel"] != 4 {
		t.Errorf("%v", got.Left)
	}
}
