package accountable

import (
	"math"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/trust/flow"
	"repute/trust/rating"
)

// party returns the address of a party for tests. No two are one identity in the graph of strangers.
func party(n byte) common.Address { return common.Address{19: n} }

// strangers returns the weights of a graph without anybody, in which every address is an identity of its own.
func strangers(t *testing.T) *flow.Weights {
	t.Helper()
	p, err := rating.DefaultParams()
	if err != nil {
		t.Fatal(err)
	}
	return flow.NewGraphBuilder().Build().Walk(nil, p.Walk)
}

const day = 24 * 60 * 60

// two is the history of an agent that party 1 registered in block 10 on day 0 and transferred to party 2 in block 20
// after so many seconds.
func two(seconds int64) *History {
	return &History{Owner: party(2), Registrar: party(1), Tenures: []rating.Tenure{
		{From: 10, To: 20, Began: day, Ended: day + seconds, Owner: party(1)},
		{From: 21, To: math.MaxUint64, Began: day + seconds, Owner: party(2)}}}
}

// addressesOf returns the addresses of identities.
func addressesOf(list []Identity) (out []common.Address) {
	for i := range list {
		out = append(out, list[i].Address)
	}
	return out
}

// TestReadActions: of each ownership the first change counts, by the owner at that time, and a transfer is nobody's
// action.
func TestReadActions(t *testing.T) {
	t.Parallel()
	mint := OwnerEvent{Block: 1, Kind: repute.KindTransfer, To: party(1)}
	uri := func(block uint64) OwnerEvent { return OwnerEvent{Block: block, Kind: repute.KindURIUpdated} }
	move := func(block uint64, to byte) OwnerEvent {
		return OwnerEvent{Block: block, Kind: repute.KindTransfer, From: party(1), To: party(to)}
	}
	for name, c := range map[string]struct {
		events    []OwnerEvent
		registrar common.Address
		actions   []Action
	}{
		"nothing": {},
		"a mint":  {events: []OwnerEvent{mint}, registrar: party(1)},
		"a registration": {events: []OwnerEvent{{Block: 1, Kind: repute.KindRegistered, To: party(3)}},
			registrar: party(3)},
		"several changes": {events: []OwnerEvent{mint, uri(2), uri(3)}, registrar: party(1),
			actions: []Action{{2, party(1)}}},
		"a change after a transfer": {events: []OwnerEvent{mint, uri(2), move(3, 2),
			{Block: 4, Kind: repute.KindMetadataSet}}, registrar: party(1), actions: []Action{{2, party(1)}, {4, party(2)}}},
		"a transfer alone": {events: []OwnerEvent{mint, move(3, 2)}, registrar: party(1)},
		"there and back": {events: []OwnerEvent{mint, uri(2), move(3, 2), move(4, 1), uri(5)}, registrar: party(1),
			actions: []Action{{2, party(1)}, {5, party(1)}}},
		"a change before any owner": {events: []OwnerEvent{uri(1), mint}, registrar: party(1)},
	} {
		registrar, actions := ReadActions(c.events)
		if registrar != c.registrar || !slices.Equal(actions, c.actions) {
			t.Errorf("%s: %s, %+v", name, registrar, actions)
		}
	}
}

// TestReceiving: a party that is given an agent does not answer for it before it acts, and the registrar answers unless
// it handed the agent over at once.
func TestReceiving(t *testing.T) {
	t.Parallel()
	w := strangers(t)
	acts := []Action{{30, party(2)}}
	for name, c := range map[string]struct {
		seconds int64
		actions []Action
		want    []common.Address
	}{
		"later":                 {seconds: 100 * day, want: []common.Address{party(1)}},
		"later, and it acts":    {seconds: 100 * day, actions: acts, want: []common.Address{party(1), party(2)}},
		"at once":               {seconds: 1},
		"at once, and it acts":  {seconds: 1, actions: acts, want: []common.Address{party(2)}},
		"a stranger acts alone": {seconds: 1, actions: []Action{{30, party(9)}}},
	} {
		h := two(c.seconds)
		h.Actions = c.actions
		got, alone := h.Identities(nil, w, 0)
		if !slices.Equal(addressesOf(got), c.want) || alone {
			t.Errorf("%s: %v, alone %t", name, addressesOf(got), alone)
		}
		block, atOnce := h.FirstTransfer(w.Graph())
		if block != 20 || atOnce != (c.seconds == 1) {
			t.Errorf("%s: transferred in block %d, at once %t", name, block, atOnce)
		}
	}
	h := &History{Owner: party(1), Registrar: party(1), Tenures: []rating.Tenure{{From: 10, To: math.MaxUint64, Began: day,
		Owner: party(1)}}}
	if got, alone := h.Identities(nil, w, 0); !alone || len(got) != 1 || !got[0].HasActed() {
		t.Errorf("one owner from the start: %+v, alone %t", got, alone)
	}
	if block, atOnce := h.FirstTransfer(w.Graph()); block != 0 || atOnce {
		t.Errorf("it was never transferred: %d, %t", block, atOnce)
	}
}

// TestTail: an owner cannot leave bad ratings behind by moving the agent away, until the new owner begins to use it.
func TestTail(t *testing.T) {
	t.Parallel()
	w := strangers(t)
	h := two(100 * day)
	moved := h.Tenures[0].Ended
	rows := []rating.Row{{Block: 15, Time: 50 * day, Rater: party(7)}, {Block: 22, Time: moved + day, Rater: party(7)},
		{Block: 23, Time: moved + day, Rater: party(2)}, {Block: 40, Time: moved + 5*day, Rater: party(7)},
		{Block: 50, Time: moved + 20*day, Rater: party(7)}}
	blocks := func(of Identity) (out []uint64) {
		for _, r := range of.Rows(h, rows, 7*day) {
			out = append(out, r.Block)
		}
		return out
	}
	list, _ := h.Identities(rows, w, 0)
	if got := blocks(list[0]); !slices.Equal(got, []uint64{15, 22, 40}) {
		t.Errorf("without an action of the new owner the former one answers for blocks %v", got)
	}
	h.Actions = []Action{{30, party(2)}}
	list, _ = h.Identities(rows, w, 0)
	if got := blocks(list[0]); !slices.Equal(got, []uint64{15, 22}) {
		t.Errorf("the former owner answers for blocks %v", got)
	}
	if got := blocks(list[1]); !slices.Equal(got, []uint64{40, 50}) {
		t.Errorf("the new owner answers for blocks %v", got)
	}
	if got := blocks(h.Present(w.Graph())); slices.Contains(got, 15) || !slices.Contains(got, 50) {
		t.Errorf("the present owner has blocks %v", got)
	}
}

// TestRowsInOrder: whatever the history, an identity answers for some of the rows, in their order, none of them from
// before it began; an identity that had the agent all the time answers for all of them.
func TestRowsInOrder(t *testing.T) {
	t.Parallel()
	w := strangers(t)
	rapid.Check(t, func(t *rapid.T) {
		h := &History{}
		block, at := uint64(0), int64(day)
		for range rapid.IntRange(1, 5).Draw(t, "tenures") {
			block, at = block+rapid.Uint64Range(1, 5).Draw(t, "blocks"), at+rapid.Int64Range(1, 20*day).Draw(t, "seconds")
			if n := len(h.Tenures); n > 0 {
				h.Tenures[n-1].To, h.Tenures[n-1].Ended = block-1, at
			}
			owner := party(byte(rapid.IntRange(1, 3).Draw(t, "owner")))
			h.Tenures = append(h.Tenures, rating.Tenure{From: block, To: math.MaxUint64, Began: at, Owner: owner})
			if rapid.Bool().Draw(t, "acts") {
				h.Actions = append(h.Actions, Action{block, owner})
			}
		}
		h.Registrar, h.Owner = h.Tenures[0].Owner, h.Tenures[len(h.Tenures)-1].Owner
		var rows []rating.Row
		for b := h.Tenures[0].From; b < block+5; b++ {
			rows = append(rows, rating.Row{Block: b, Time: at, Rater: party(byte(rapid.IntRange(1, 9).Draw(t, "rater")))})
		}
		list, alone := h.Identities(rows, w, 0)
		for _, id := range list {
			got := id.Rows(h, rows, 7*day)
			next := 0
			for _, r := range got {
				found := slices.Index(rows[next:], r)
				if found < 0 || r.Block < id.from {
					t.Fatalf("%s answers for %+v from block %d on, among %+v", id.Address, r, id.from, got)
				}
				next += found + 1
			}
			if alone && len(got) != len(rows) {
				t.Fatalf("%s had the agent alone and answers for %d of %d rows", id.Address, len(got), len(rows))
			}
		}
		if alone && len(list) != 1 {
			t.Fatalf("%d identities had the agent alone", len(list))
		}
	})
}
