package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"repute"
	"repute/contracts"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
	"repute/store/importdb"
)

// In whatever pieces and order the logs of a chain arrive, as imports or as late
// logs of a followed chain, the index in the end is the one of the whole chain.
func TestMergeDoesNotDependOnOrder(t *testing.T) {
	db := testDB(t)
	var chains atomic.Uint64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l := newLedger()
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			l.mine(t)
		}
		whole := batchOf(chains.Add(1), l.genesis, l.blocks)
		ok(t, chaindb.AddChain(ctx, db, testChain(whole.ChainID)))
		ok(t, eventdb.Apply(ctx, db, whole))
		want := dump(t, ctx, db, whole.ChainID)

		imported := chains.Add(1)
		for _, part := range parts(t, whole.Records, 4) {
			_, err := importdb.Import(ctx, db, testChain(imported), part, nil, nil)
			ok(t, err)
		}
		equalDumps(t, "import", want, dump(t, ctx, db, imported))

		lossy := parts(t, whole.Records, 3)
		holey := whole
		holey.ChainID, holey.Records = chains.Add(1), inOrder(whole.Records, lossy[0])
		ok(t, chaindb.AddChain(ctx, db, testChain(holey.ChainID)))
		ok(t, eventdb.Apply(ctx, db, holey))
		for _, part := range lossy[1:] {
			_, err := importdb.Repair(ctx, db, holey.ChainID, store.Lease{}, part, nil)
			ok(t, err)
		}
		equalDumps(t, "repair", want, dump(t, ctx, db, holey.ChainID))
	})
}

// parts deals records out at random.
func parts(t *rapid.T, records []repute.Record, n int) [][]repute.Record {
	out := make([][]repute.Record, n)
	for _, r := range records {
		i := rapid.IntRange(0, n-1).Draw(t, "part")
		out[i] = append(out[i], r)
	}
	return out
}

func inOrder(all, some []repute.Record) (out []repute.Record) {
	chosen := map[[2]uint64]bool{}
	for _, r := range some {
		chosen[[2]uint64{r.Log.BlockNumber, uint64(r.Log.Index)}] = true
	}
	for _, r := range all {
		if chosen[[2]uint64{r.Log.BlockNumber, uint64(r.Log.Index)}] {
			out = append(out, r)
		}
	}
	return out
}

func TestImportTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	b := batchOf(1, repute.Block{}, smallChain().blocks)
	covered := []repute.BlockRange{{From: 10, To: 12}}
	first, err := importdb.Import(ctx, db, testChain(1), b.Records, b.Blocks, covered)
	ok(t, err)
	before := dump(t, ctx, db, 1)
	second, err := importdb.Import(ctx, db, testChain(1), b.Records, b.Blocks, covered)
	ok(t, err)
	equalDumps(t, "second import", before, dump(t, ctx, db, 1))
	if first.Events != len(b.Records) || first.Duplicates != 0 || first.Applied["NewFeedback"] != 1 ||
		first.Agents != 1 {
		t.Errorf("first import: %+v", first)
	}
	if second.Events != 0 || second.Duplicates != len(b.Records) || second.Agents != 1 {
		t.Errorf("second import: %+v", second)
	}
}

func TestImportRefusesContradictions(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	records := batchOf(1, repute.Block{}, smallChain().blocks).Records
	_, err := importdb.Import(ctx, db, testChain(1), records[:2], nil, nil)
	ok(t, err)
	before := dump(t, ctx, db, 1)

	otherLog := append([]repute.Record{}, records...)
	otherLog[0].Log.Data = []byte{1}
	otherBlock := append([]repute.Record{}, records...)
	otherBlock[0].Log.BlockHash = common.Hash{0xbb}
	foreign := append([]repute.Record{}, records...)
	foreign[3].Log.Address = foreignValidation
	for name, bad := range map[string][]repute.Record{"log": otherLog, "block": otherBlock, "contract": foreign} {
		if _, err := importdb.Import(ctx, db, testChain(1), bad, nil, nil); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("other %s: %v", name, err)
		}
		equalDumps(t, "refused import", before, dump(t, ctx, db, 1))
	}
	ok(t, chaindb.AddChain(ctx, db, testChain(2)))
	if _, err := importdb.Import(ctx, db, testChain(2), records, nil, nil); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("import into a followed chain: %v", err)
	}
}

func TestImportMergesCoveredRanges(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	_, err := importdb.Import(ctx, db, testChain(1), nil, nil,
		[]repute.BlockRange{{From: 10, To: 19}, {From: 40, To: 49}, {From: 60, To: 69}})
	ok(t, err)
	_, err = importdb.Import(ctx, db, testChain(1), nil, nil,
		[]repute.BlockRange{{From: 20, To: 29}, {From: 45, To: 61}})
	ok(t, err)
	rows, err := db.Pool().Query(ctx,
		`select lower(r), upper(r) - 1 from chains, unnest(covered) r where chain_id = 1 order by r`)
	ok(t, err)
	var got [][2]uint64
	for rows.Next() {
		var r [2]uint64
		ok(t, rows.Scan(&r[0], &r[1]))
		got = append(got, r)
	}
	if len(got) != 2 || got[0] != [2]uint64{10, 29} || got[1] != [2]uint64{40, 69} {
		t.Errorf("covered %v", got)
	}
}

// A log that was missed is put in its place, what waited for it takes effect, and
// readers are told which agent to read again.
func TestRepairAppliesWhatWaited(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	whole := batchOf(1, newLedger().genesis, smallChain().blocks)
	holey := whole
	holey.Records = whole.Records[2:] // neither Transfer nor Registered
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, holey))
	waiting := rows(t, dump(t, ctx, db, 1), "pending")
	if len(waiting) != 4 || waiting[0].str("reason") != "unknown_agent" {
		t.Fatalf("waiting: %v", waiting)
	}
	since := newestChange(t, ctx, db)
	result, err := importdb.Repair(ctx, db, 1, store.Lease{}, whole.Records[:2], nil)
	ok(t, err)
	if result.Events != 2 || result.Pending != 0 || result.Agents != 1 {
		t.Errorf("result %+v", result)
	}
	told := readChanges(t, ctx, db, since)
	if len(told) != 1 || told[0].Kind != "repaired" || told[0].TokenID == nil || !told[0].TokenID.IsZero() {
		t.Errorf("told %+v", told)
	}
	above := whole.Records[:1]
	above[0].Log.BlockNumber = 1000
	if _, err := importdb.Repair(ctx, db, 1, store.Lease{}, above, nil); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("repair above the cursor: %v", err)
	}
}

// Whatever a block was stored with, amending it leaves the index of the whole chain.
func TestAmendReplacesABlock(t *testing.T) {
	db := testDB(t)
	var chains atomic.Uint64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l := newLedger()
		for range rapid.IntRange(1, 5).Draw(t, "blocks") {
			l.mine(t)
		}
		whole := batchOf(chains.Add(1), l.genesis, l.blocks)
		if len(whole.Records) == 0 {
			return
		}
		ok(t, chaindb.AddChain(ctx, db, testChain(whole.ChainID)))
		ok(t, eventdb.Apply(ctx, db, whole))
		want := dump(t, ctx, db, whole.ChainID)

		wrong := whole
		wrong.ChainID, wrong.Records = chains.Add(1), append([]repute.Record{}, whole.Records...)
		at := rapid.IntRange(0, len(whole.Records)-1).Draw(t, "log")
		right := whole.Records[at]
		number := right.Log.BlockNumber
		a := importdb.Amendment{Records: []repute.Record{right}}
		for _, b := range whole.Blocks {
			if b.Number == number {
				a.Block = b
			}
		}
		if rapid.Bool().Draw(t, "other in its place") {
			wrong.Records[at].Log.TxHash = common.Hash{0xee}
			a.Remove = []types.Log{wrong.Records[at].Log}
		} else { // one too much
			invented := right
			invented.Log.Index, invented.Log.TxHash = 1_000_000, common.Hash{0xee}
			i := at
			for i < len(wrong.Records) && wrong.Records[i].Log.BlockNumber == number {
				i++
			}
			wrong.Records = slices.Insert(wrong.Records, i, invented)
			a.Remove = []types.Log{invented.Log}
		}
		ok(t, chaindb.AddChain(ctx, db, testChain(wrong.ChainID)))
		ok(t, eventdb.Apply(ctx, db, wrong))
		ok(t, importdb.Amend(ctx, db, wrong.ChainID, store.Lease{}, a))
		equalDumps(t, "amended", want, dump(t, ctx, db, wrong.ChainID))
		if err := importdb.Amend(ctx, db, wrong.ChainID, store.Lease{}, a); !errors.Is(err, repute.ErrNotFound) {
			t.Fatalf("removing it twice: %v", err)
		}
	})
}

// A block that was stored under a made-up hash gets its own, and readers are told of
// the agents whose logs were removed.
func TestAmendCorrectsAHash(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	whole := batchOf(1, newLedger().genesis, smallChain().blocks)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, eventdb.Apply(ctx, db, whole))
	last := whole.Records[len(whole.Records)-1]
	block := whole.Blocks[len(whole.Blocks)-1]
	block.Hash = common.Hash{0xab}
	since := newestChange(t, ctx, db)
	ok(t, importdb.Amend(ctx, db, 1, store.Lease{}, importdb.Amendment{Block: block, Remove: []types.Log{last.Log}}))
	stored, err := chaindb.StoredBlock(ctx, db, 1, block.Number)
	ok(t, err)
	if stored.Hash != block.Hash {
		t.Errorf("stored %s", stored.Hash)
	}
	told := readChanges(t, ctx, db, since)
	if len(told) != 1 || told[0].Kind != "repaired" || told[0].TokenID == nil {
		t.Errorf("told %+v", told)
	}
	if n := rows(t, dump(t, ctx, db, 1), "feedback"); len(n) != 0 {
		t.Errorf("the removed rating is still there: %v", n)
	}
}

// A registration file without transfers gives owners that are claimed only.
func TestImportRecordedMainnetLogs(t *testing.T) {
	t.Parallel()
	records := mainnetRecords(t)
	db, ctx := testDB(t), ctxOf(t)
	chain := testChain(1)
	chain.Identity, chain.StartBlock = records[0].Log.Address, 24339925
	result, err := importdb.Import(ctx, db, chain, records, nil, nil)
	ok(t, err)
	if result.Agents != 109 || result.Pending != 18 || result.Applied["URIUpdated"] != 31 ||
		result.Waiting["URIUpdated"] != 18 {
		t.Errorf("result %+v", result)
	}
	unknown := map[string]bool{}
	dumped := dump(t, ctx, db, 1)
	for _, p := range rows(t, dumped, "pending") {
		unknown[p.str("agent")] = true
	}
	for _, a := range rows(t, dumped, "agents") {
		if a["claimed"] != true || a.str("owner") == "" || a.str("wallet") != "" {
			t.Fatalf("agent %v", a)
		}
	}
	if len(unknown) != 17 {
		t.Errorf("%d unknown agents", len(unknown))
	}
}

func mainnetRecords(t *testing.T) (records []repute.Record) {
	t.Helper()
	root := os.Getenv("REPUTE_TEST_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	raw, err := os.ReadFile(filepath.Join(root, "erc8004", "flowmcp-mainnet-logs", "mainnet-event-logs.json"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("test data absent: mainnet-event-logs.json")
	}
	ok(t, err)
	type recorded struct {
		BlockNumber, LogIndex, TransactionIndex uint64
		BlockHash, TransactionHash              common.Hash
		Address                                 common.Address
		Topics                                  []common.Hash
		Data                                    hexutil.Bytes
	}
	var file struct{ RegisteredLogs, URIUpdatedLogs []recorded }
	ok(t, json.Unmarshal(raw, &file))
	for _, l := range append(file.RegisteredLogs, file.URIUpdatedLogs...) {
		log := types.Log{Address: l.Address, Topics: l.Topics, Data: l.Data, BlockNumber: l.BlockNumber,
			BlockHash: l.BlockHash,
			TxHash:    l.TransactionHash, TxIndex: uint(l.TransactionIndex), Index: uint(l.LogIndex)}
		e, err := contracts.Read(log)
		ok(t, err)
		records = append(records, repute.Record{Log: log, Event: e})
	}
	return records
}

// smallChain registers one agent, moves it and rates it, in three blocks.
func smallChain() *ledger {
	owner, buyer := rpctest.Account(1), rpctest.Account(2)
	return chainOf(
		txOf{
			repute.Transfer{To: owner, TokenID: token(0)},
			repute.Registered{TokenID: token(0), Owner: owner, URI: "https://a.example"},
			repute.MetadataSet{TokenID: token(0), Key: "agentWallet", Value: owner.Bytes()},
		},
		txOf{
			repute.MetadataSet{TokenID: token(0), Key: "agentWallet", Value: []byte{}},
			repute.Transfer{From: owner, To: buyer, TokenID: token(0)},
		},
		txOf{repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(3), Index: 1, Value: values[7], Decimals: 2,
			Tag1: "quality"}},
	)
}
