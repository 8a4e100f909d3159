package store_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/verifydb"
)

// hashOf is the hash of a block of the tests of proofs.
func hashOf(n uint64) common.Hash { return common.Hash{1, byte(n >> 8), byte(n)} }

func proven(from, to uint64, unproven ...repute.BlockRange) verifydb.BlockProof {
	p := verifydb.BlockProof{Blocks: repute.BlockRange{From: from, To: to}, Parent: hashOf(from - 1), Hash: hashOf(to),
		Unproven: unproven}
	if len(unproven) > 0 {
		p.Reason = fmt.Sprintf("of %d", from)
	}
	return p
}

// Ranges that are compared one after the other become one, which ends where the newest
// ends and goes on below where the oldest does.
func TestBlockProofsJoin(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 61)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	sqlExec(t, db, "update chains set cursor_block = 9000")
	ctx, l := t.Context(), store.Lease{}
	check := func(what string, want ...verifydb.BlockProof) {
		t.Helper()
		got, err := verifydb.BlockProofs(ctx, db, 7)
		ok(t, err)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n%v, want\n%v", what, got, want)
		}
	}
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(301, 400, repute.BlockRange{From: 350, To: 350})))
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(501, 600)))
	check("apart", proven(301, 400, repute.BlockRange{From: 350, To: 350}), proven(501, 600))
	wrong := proven(450, 500)
	wrong.Hash = common.Hash{9}
	if err := verifydb.SaveBlockProof(ctx, db, 7, l, wrong); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another block than the next one continues: %v", err)
	}
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(401, 500, repute.BlockRange{From: 420, To: 430})))
	joined := proven(301, 600, repute.BlockRange{From: 350, To: 350}, repute.BlockRange{From: 420, To: 430})
	joined.Reason = "of 401"
	check("joined", joined)

	ok(t, verifydb.SettleBlocks(ctx, db, 7, l, []uint64{420, 350},
		[]verifydb.UnprovenBlock{{Block: 421, Reason: "older"}}))
	joined.Unproven = []repute.BlockRange{{From: 421, To: 430}}
	check("two are proven", joined)

	sqlExec(t, db,
		"insert into block_proofs (chain_id, from_block, to_block, parent, hash) values (7, 201, 300, '', '\\x09')")
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(601, 610)))
	sqlExec(t, db, "delete from block_proofs where from_block = 301")
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(301, 310)))
	check("what ends in another block is forgotten", proven(301, 310))

	loose := proven(250, 300, repute.BlockRange{From: 260, To: 260}, repute.BlockRange{From: 280, To: 290})
	loose.Loose = 280
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, loose))
	ok(t, verifydb.TieBlockProofs(ctx, db, 7, l, repute.Block{Number: 280, Parent: common.Hash{8}}))
	tied := proven(280, 310, repute.BlockRange{From: 280, To: 290})
	tied.Parent, tied.Reason = common.Hash{8}, "of 250"
	check("tied", tied)

	ok(t, verifydb.ForgetBlockProofs(ctx, db, 7, l))
	check("forgotten")
	at, err := verifydb.ReadStanding(ctx, db, 7)
	ok(t, err)
	if !at.Bloomless {
		t.Error("nobody knows that blooms are of no use")
	}
	var odd []repute.BlockRange
	for n := uint64(1_000); n < 4_000; n += 2 {
		odd = append(odd, repute.BlockRange{From: n, To: n})
	}
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(1_000, 4_000, odd...)))
	if got, err := verifydb.BlockProofs(ctx, db, 7); err != nil || len(got) != 1 || len(got[0].Unproven) != 1 ||
		got[0].Unproven[0] != (repute.BlockRange{From: 1_000, To: 3_998}) {
		t.Errorf("1,500 ranges: %v, %v", got, err)
	}
}

// A rewind deletes what is known of the blocks that it removes, requests included. What is
// left joins the blocks after it, unless its newest block is unproven. A validation contract
// that is listed late deletes all of it.
func TestBlockProofsEndWithTheirBlocks(t *testing.T) {
	t.Parallel()
	for _, unproven := range []repute.BlockRange{{From: 104, To: 108}, {From: 104, To: 105}} {
		db, w := open(t), newWorld(7, 100, 62)
		w.grow(20)
		w.store(t, db, w.tip().Number)
		ctx, l := t.Context(), store.Lease{}
		first := proven(100, 110, unproven)
		first.Hash = w.blocks[10].Hash
		ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, first))
		last := proven(115, w.tip().Number)
		last.Hash = w.tip().Hash
		ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, last))
		_, err := verifydb.AskForBlocks(ctx, db, 7, []uint64{101, 106, 107, 115})
		ok(t, err)
		below := w.blocks[6]
		ok(t, eventdb.Rewind(ctx, db, below, w.batch(below, 110)))
		if asked, err := verifydb.AskedBlocks(ctx, db, 7, 10); err != nil || fmt.Sprint(asked) != "[{101 0} {106 0}]" {
			t.Errorf("still asked for: %v, %v", asked, err)
		}
		cut := proven(100, 106, repute.BlockRange{From: 104, To: min(106, unproven.To)})
		if cut.Hash = below.Hash; unproven.To >= 106 {
			cut.Hash = common.Hash{}
		}
		got, err := verifydb.BlockProofs(ctx, db, 7)
		if ok(t, err); fmt.Sprint(got) != fmt.Sprint([]verifydb.BlockProof{cut}) {
			t.Errorf("after a rewind:\n%v, want\n%v", got, cut)
		}
		next := verifydb.BlockProof{Blocks: repute.BlockRange{From: 107, To: 110}, Parent: below.Hash,
			Hash: w.blocks[10].Hash}
		ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, next))
		from := uint64(100)
		if unproven.To >= 106 {
			from = 107
		}
		if got, err = verifydb.BlockProofs(ctx, db, 7); err != nil || len(got) != 1 ||
			got[0].Blocks != (repute.BlockRange{From: from, To: 110}) {
			t.Errorf("after the next range: %+v, %v", got, err)
		}
		more := w.chain
		more.Validations = append([]common.Address{{0x77}}, more.Validations...)
		ok(t, chaindb.AddChain(ctx, db, more))
		if got, err := verifydb.BlockProofs(ctx, db, 7); err != nil || len(got) != 0 {
			t.Errorf("a new contract: %+v, %v", got, err)
		}
	}
}

// A range whose newest block was replaced while it was compared is not saved.
func TestBlockProofOfAReplacedBlock(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 63)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	ctx, l := t.Context(), store.Lease{}
	for name, p := range map[string]verifydb.BlockProof{"another hash": proven(105, 110),
		"above the newest stored block": proven(105, 200)} {
		if err := verifydb.SaveBlockProof(ctx, db, 7, l, p); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: %v, want %v", name, err, repute.ErrConflict)
		}
	}
	sqlExec(t, db, "delete from blocks where number = 110") // final, without events
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, proven(105, 110)))
	sqlExec(t, db, "update blocks set hash = '\\x09' where number = 104")
	below := proven(102, 104)
	ok(t, verifydb.SaveBlockProof(ctx, db, 7, l, below)) // tied by the range above, stored with a wrong hash
}

// A requested block that could not be proven is unproven afterwards, with its reason. One that
// no endpoint could answer about stays requested, and is due later each time.
func TestRequestedBlocks(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 64)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	proveTo(t, db, 7, 100, w.tip().Number)
	ctx, l := t.Context(), store.Lease{}
	due := func(want string) {
		t.Helper()
		if got, err := verifydb.AskedBlocks(ctx, db, 7, 10); err != nil || fmt.Sprint(got) != want {
			t.Errorf("due are %v, %v; want %s", got, err, want)
		}
	}
	_, err := verifydb.AskForBlocks(ctx, db, 7, []uint64{103, 105, 107, 5_000})
	ok(t, err)
	due("[{103 0} {105 0} {107 0} {5000 0}]")
	ok(t, verifydb.SettleBlocks(ctx, db, 7, l, []uint64{103}, []verifydb.UnprovenBlock{{Block: 105, Reason: "no root"},
		{Block: 5_000, Reason: "of no range"}}))
	due("[{107 0}]")
	got, err := verifydb.BlockProofs(ctx, db, 7)
	if ok(t, err); len(got) != 1 || fmt.Sprint(got[0].Unproven) != "[{105 105}]" || got[0].Reason != "no root" {
		t.Errorf("%+v, want block 105 unproven", got)
	}
	ok(t, verifydb.SettleBlocks(ctx, db, 7, l, nil, []verifydb.UnprovenBlock{{Block: 110, Reason: "newer"},
		{Block: 101, Reason: "older"}}))
	if got, err = verifydb.BlockProofs(ctx, db, 7); err != nil ||
		fmt.Sprint(got[0].Unproven) != "[{101 101} {105 105} {110 110}]" || got[0].Reason != "newer" {
		t.Errorf("%+v, %v, want the reason of the newest", got, err)
	}
	ok(t, verifydb.SettleBlocks(ctx, db, 7, l, []uint64{105}, nil))
	if got, err = verifydb.BlockProofs(ctx, db, 7); err != nil || got[0].Reason != "newer" {
		t.Errorf("%+v, %v, want the reason of block 110", got, err)
	}
	ok(t, verifydb.SettleBlocks(ctx, db, 7, l, []uint64{110}, nil))
	if got, err = verifydb.BlockProofs(ctx, db, 7); err != nil || fmt.Sprint(got[0].Unproven) != "[{101 101}]" ||
		got[0].Reason != "" {
		t.Errorf("%+v, %v, want no reason of a block that is proven", got, err)
	}
	for tries, want := range []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
		ok(t, verifydb.PostponeBlocks(ctx, db, 7, l, []uint64{107}, time.Minute, 3*time.Minute))
		due("[]")
		var wait float64
		ok(t, db.Pool().QueryRow(ctx,
			"select extract(epoch from due - now())::float8 from cursors where job = 'requested block' and part = 107").Scan(&wait))
		if wait > want.Seconds() || wait < want.Seconds()-30 {
			t.Errorf("after %d tries it is due in %.0f seconds, want %s", tries+1, wait, want)
		}
	}
	sqlExec(t, db, "update cursors set due = now() where job = 'requested block'")
	due("[{107 4}]")
	_, err = verifydb.AskForBlocks(ctx, db, 7, []uint64{107})
	ok(t, err)
	due("[{107 0}]")
}

// TestUnprovenBlocksStayUnproven keeps every block unproven that could not be proven, however many
// ranges they are, until it is proven.
func TestUnprovenBlocksStayUnproven(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 65)
	w.grow(20)
	w.store(t, db, w.tip().Number)
	ctx, l := t.Context(), store.Lease{}
	const first, blocks = 101, 5_000 // a range of its own, of which only the proof is stored
	rapid.Check(t, func(rt *rapid.T) {
		sqlExec(t, db, "delete from block_proofs")
		sqlExec(t, db,
			fmt.Sprintf("insert into block_proofs (chain_id, from_block, to_block, parent, hash, reason, loose, unproven) values (7, %d, %d, '', '', '', 0, '{}')", first, first+blocks-1))
		want := map[uint64]bool{}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			stride := rapid.Uint64Range(1, 4).Draw(rt, "stride")
			start := rapid.Uint64Range(first, first+blocks-1).Draw(rt, "start")
			var unproven []verifydb.UnprovenBlock
			for n := start; n < first+blocks && len(unproven) < 1_500; n += stride {
				unproven, want[n] = append(unproven, verifydb.UnprovenBlock{Block: n, Reason: "r"}), true
			}
			var proven []uint64
			for range rapid.IntRange(0, 3).Draw(rt, "proven") {
				n := rapid.Uint64Range(first, first+blocks-1).Draw(rt, "block")
				proven = append(proven, n)
				delete(want, n)
			}
			ok(t, verifydb.SettleBlocks(ctx, db, 7, l, nil, unproven))
			ok(t, verifydb.SettleBlocks(ctx, db, 7, l, proven, nil))
		}
		got, err := verifydb.BlockProofs(ctx, db, 7)
		ok(t, err)
		stored := func(n uint64) bool {
			return slices.ContainsFunc(got[0].Unproven,
				func(r repute.BlockRange) bool { return r.From <= n && n <= r.To })
		}
		for n := range want {
			if !stored(n) {
				rt.Fatalf("block %d counts as proven", n)
			}
		}
		if len(got[0].Unproven) > 1_004 { // a proven block parts a range
			rt.Fatalf("%d ranges are kept", len(got[0].Unproven))
		}
	})
}
