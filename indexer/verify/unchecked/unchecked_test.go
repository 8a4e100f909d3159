package unchecked

import (
	"errors"
	"slices"
	"testing"

	"repute"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	var l List
	gone, late := errors.New("gone"), errors.New("late")
	for _, n := range []uint64{3, 4, 5, 9} {
		l.Blocks("", repute.BlockRange{From: n, To: n}, gone)
	}
	l.Blocks("", repute.BlockRange{From: 7, To: 7}, late)
	l.Blocks("headers of", repute.BlockRange{From: 1, To: 50}, gone)
	l.Blocks("headers of", repute.BlockRange{From: 51, To: 80}, gone)
	l.Add("state", late)
	l.Add("state", late)
	l.Views([]repute.EventKind{repute.KindApproval, repute.KindTransfer})
	l.Views([]repute.EventKind{repute.KindTransfer})
	want := []string{"4 of blocks 3 to 9: gone", "block 7: late", "headers of blocks 1 to 80: gone", "state: late",
		"state of Transfer, Approval: a view that tells it is not answered"}
	if got := l.Texts(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
