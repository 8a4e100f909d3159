package graph

import (
	"fmt"
	"math"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/flow"
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

// TestUnreadTagsDoNotDependOnProcessors: the tags that are not read are counted alike however the owners are divided
// among goroutines, also when there are very many of them.
func TestUnreadTagsDoNotDependOnProcessors(t *testing.T) {
	const owners, tags, often = 8, 20_000, 3
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, processors := range []int{1, 3} {
		runtime.GOMAXPROCS(processors)
		var known flow.Addresses
		for i := range owners {
			known.Add(common.Address{byte(1 + i)})
		}
		r := NewReaderOf(&known, repute.Block{Time: time.Unix(2000, 0)}, nil, nil, p)
		r.Pack(&rating.Packing{Raters: known.List(), Expand: func(of *rating.PackedRow, to *rating.Row) {
			*to = rating.Row{Time: int64(of.Time), Rater: known.At(of.Writer), Writer: of.Writer + 1,
				Amount: repute.Amount{Value: big.NewInt(1)}, Tag1: fmt.Sprintf("tag %07d", of.Kind)}
		}})
		r.Settle()
		for i := range owners {
			r.Owner(uint32(i))
		}
		r.PackedOwners(owners, func(i int, use func(*PackedAgent)) {
			a := PackedAgent{Owner: uint32(i)}
			for n := range tags { // the last owner's are the most frequent ones by far
				a.Rows = append(a.Rows, rating.PackedRow{Kind: uint32(i*tags + n), Time: 1000})
			}
			for range often * i {
				a.Rows = append(a.Rows, rating.PackedRow{Kind: uint32((i + 1) * tags), Time: 1000})
			}
			use(&a)
		})
		got, _ := r.Coverage(r.Build().Walk(nil, p.Walk))
		for n, tag := range got.Tags[:owners-1] {
			last := owners - 1 - n // only the tag after the owner's own ones occurs that often
			want := int64(often * last)
			if last < owners-1 {
				want++ // the next owner's first tag is the same
			}
			if tag.Tag != fmt.Sprintf("tag %07d", (last+1)*tags) || tag.Records != want {
				t.Fatalf("%d processors: %+v in place %d, want %d records of tag %d", processors, tag, n, want,
					(last+1)*tags)
			}
		}
		if n := got.Left[string(rating.ReasonUnknownTag)]; n != got.Records.All {
			t.Errorf("%d processors: %d of %d records are left out for their tags", processors, n, got.Records.All)
		}
	}
}
