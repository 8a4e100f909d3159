package indexer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/archive"
	"repute/indexer/node"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
	"repute/store/searchdb"
)

// testData opens a file of the shared test data or skips the test.
func testData(t *testing.T, name string) []byte {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("test data absent: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func network(t *testing.T, id string) repute.Chain {
	t.Helper()
	d, err := contracts.FindDeployment(id)
	if err != nil {
		t.Fatal(err)
	}
	return d.Chain()
}

// The recorded mainnet logs are a selection: registrations without transfers and
// URI updates of agents that are not in the file.
func TestImportMainnetRecording(t *testing.T) {
	t.Parallel()
	raw := testData(t, "erc8004/flowmcp-mainnet-logs/mainnet-event-logs.json")
	db, chain := openStore(t), network(t, "1")
	res, err := archive.Import(t.Context(), db, chain, bytes.NewReader(raw), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Events != 158 || res.Agents != 109 || res.Applied["Registered"] != 109 || res.Applied["URIUpdated"] != 31 ||
		res.Pending != 18 {
		t.Errorf("import: %+v", res)
	}
	s := status(t, db)
	if s.Agents != 109 || s.Completeness.Status != repute.Partial || s.Completeness.Pending != 18 {
		t.Errorf("status: %d agents, %+v", s.Agents, s.Completeness)
	}
	if want := (repute.BlockRange{From: 24339925, To: 24359788}); len(s.Completeness.Ranges) != 1 ||
		s.Completeness.Ranges[0] != want {
		t.Errorf("ranges %v, want %v", s.Completeness.Ranges, want)
	}
	page, err := searchdb.Agents(t.Context(), db, searchdb.AgentFilter{ChainIDs: []uint64{1}, Limit: 1})
	if err != nil || len(page.Items) != 1 || !page.Items[0].OwnerClaimed {
		t.Errorf("first agent %+v, %v", page.Items, err)
	}
	before := dump(t, db)
	again, err := archive.Import(t.Context(), db, chain, bytes.NewReader(raw), nil)
	if err != nil || again.Events != 0 || again.Duplicates != 158 {
		t.Errorf("again: %+v, %v", again, err)
	}
	if dump(t, db) != before {
		t.Error("importing twice changed the index")
	}
}

func TestImportRealReceipts(t *testing.T) {
	t.Parallel()
	db := openStore(t)
	raw := testData(t, "erc8004/misc-real-logs/base-sepolia-register-receipt-logs.json")
	res, err := archive.Import(t.Context(), db, network(t, "84532"), bytes.NewReader(raw), nil)
	if err != nil || res.Agents != 1 || res.Pending != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	var id repute.TokenID
	id.SetUint64(0x18e)
	ref := repute.AgentRef{ChainID: 84532, TokenID: id}
	agent, err := chaindb.ResolveAgent(t.Context(), db, ref, 0)
	if err != nil {
		t.Fatal(err)
	}
	a, _, err := query.Agent(t.Context(), db, agent, repute.At{Finality: repute.Latest})
	if err != nil || a.OwnerClaimed || a.Owner != common.HexToAddress("0x44896a716f7b5ed343c6962b3d56faa5377cd052") ||
		a.Registered.Time.Unix() != 0x698b1c94 {
		t.Errorf("agent %+v, %v", a, err)
	}
	if _, err := archive.Import(t.Context(), db, network(t, "8453"), bytes.NewReader(raw), nil); !errors.Is(err,
		repute.ErrInvalid) {
		t.Errorf("logs of another chain: %v", err)
	}
}

// Whatever the order and the number of files, the same logs give the same index
// as following the chain.
func TestImportEqualsFollow(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	newWorld(c, 21).grow(120)
	var early, late []types.Log
	for _, b := range c.Blocks() {
		if b.Number()%3 == 0 {
			late = append(late, b.Logs()...)
		} else {
			early = append(early, b.Logs()...)
		}
	}
	parts, whole := openStore(t), openStore(t)
	for _, logs := range [][]types.Log{early, late} {
		importLogs(t, parts, chainOf(c), logs)
	}
	importLogs(t, whole, chainOf(c), append(late, early...))
	if a, b := dump(t, parts), dump(t, whole); a != b || len(a) < 1_000 {
		t.Errorf("two imports and one differ (%d and %d bytes)", len(a), len(b))
	}
	followed := openStore(t)
	catchUp(t, follow(t, followed, c, Options{}))
	if a, b := dump(t, whole), dump(t, followed); a != b {
		t.Errorf("import and follow differ (%d and %d bytes)", len(a), len(b))
	}
}

func importLogs(t *testing.T, db *store.DB, c repute.Chain, logs []types.Log) {
	t.Helper()
	raw, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Import(t.Context(), db, c, bytes.NewReader(raw), nil); err != nil {
		t.Fatal(err)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	logs := c.Mine(c.Register(0, rpctest.Account(1), "x"), c.Feedback(0, rpctest.Account(2), 1, 5, "t")).Logs()
	change := func(f func([]types.Log) any) string {
		raw, err := json.Marshal(f(append([]types.Log(nil), logs...)))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	tests := map[string]struct{ in, want string }{
		"same position": {change(func(l []types.Log) any { l[1].Index = 0; return l }), "another log"},
		"two hashes":    {change(func(l []types.Log) any { l[1].BlockHash[0]++; return l }), "hash"},
		"two times":     {change(func(l []types.Log) any { l[1].BlockTimestamp++; return l }), "time"},
		"out of range": {change(func(l []types.Log) any {
			return map[string]any{"blockRange": map[string]int{"from": 5, "to": 9}, "logs": l}
		}), "outside"},
		"other contracts": {change(func(l []types.Log) any {
			return []types.Log{{Address: common.Address{1},
				Topics: l[0].Topics}}
		}), "none of the 1 logs"},
		"nothing": {"[]", "no logs"},
		"cut":     {change(func(l []types.Log) any { return l })[:900], "line 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openStore(t)
			if _, err := archive.Import(t.Context(), db, chainOf(c), strings.NewReader(tt.in), nil); !errors.Is(err,
				repute.ErrInvalid) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want an input error with %q", err, tt.want)
			}
			if got := dump(t, db); got != "" {
				t.Errorf("stored: %.300s", got)
			}
		})
	}
}

// A time that contradicts the stored one of the same block is refused, also without
// hashes to compare.
func TestImportRefusesOtherTimes(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	logs := c.Mine(c.Register(0, rpctest.Account(1), "x"), c.Feedback(0, rpctest.Account(2), 1, 5, "t")).Logs()
	db := openStore(t)
	importLogs(t, db, chainOf(c), logs[:1])
	before := dump(t, db)
	for i := range logs {
		logs[i].BlockTimestamp += 7
		logs[i].BlockHash = common.Hash{}
	}
	raw, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), nil); !errors.Is(err,
		repute.ErrConflict) || !strings.Contains(err.Error(), "another time") {
		t.Errorf("got %v", err)
	}
	logs[0].BlockTimestamp++
	if raw, err = json.Marshal(logs); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), nil); !errors.Is(err,
		repute.ErrInvalid) || !strings.Contains(err.Error(), "has time") {
		t.Errorf("two times in one file: got %v", err)
	}
	if dump(t, db) != before {
		t.Error("something was stored")
	}
}

func TestImportIntoFollowedChain(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	logs := c.Mine(c.Register(0, rpctest.Account(1), "x")).Logs()
	db := openStore(t)
	catchUp(t, follow(t, db, c, Options{}))
	raw, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), nil); !errors.Is(err,
		repute.ErrConflict) {
		t.Errorf("%v, want ErrConflict", err)
	}
}

// Ethereum's logs are none of Base, whose registry has the same address: it was not there
// yet. The error names the network that they fit.
func TestImportBeforeDeployment(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), "https://a"))
	l := c.Blocks()[1].Logs()[0]
	l.BlockNumber = 24_350_000
	raw, err := json.Marshal([]types.Log{l})
	if err != nil {
		t.Fatal(err)
	}
	db, base, ethereum := openStore(t), network(t, "base"), network(t, "ethereum")
	_, err = archive.Import(t.Context(), db, base, bytes.NewReader(raw), nil)
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "ethereum (mainnet, chain 1)") ||
		!strings.Contains(err.Error(), "before block") {
		t.Errorf("logs of Ethereum into Base: %v", err)
	}
	lines := []string{fmt.Sprintf(`{"format":%q,"chainId":%d,"name":"base","identity":%q,"reputation":%q,"validations":[],"startBlock":1,"blockRange":{"from":1,"to":24350001},"covered":[],"last":{"hash":"0x%064x","time":0}}`,
		"repute-events/1", base.ID, base.Identity, base.Reputation, 0), string(raw[1 : len(raw)-1]),
		`{"end":{"events":1}}`}
	_, err = archive.ImportSnapshot(t.Context(), db, strings.NewReader(strings.Join(lines, "\n")),
		archive.SnapshotOptions{})
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "ethereum (mainnet, chain 1)") {
		t.Errorf("a snapshot of them: %v", err)
	}
	if list, err := query.Chains(t.Context(), db); err != nil || len(list) != 0 {
		t.Errorf("%d chains were made, %v", len(list), err)
	}
	if _, err := archive.Import(t.Context(), db, ethereum, bytes.NewReader(raw), nil); err != nil {
		t.Errorf("into Ethereum: %v", err)
	}
}

// What a chain's endpoint has under another hash is refused before anything is stored.
func TestImportComparesWithTheChain(t *testing.T) {
	t.Parallel()
	c, other := rpctest.New(t, rpctest.Options{}), rpctest.New(t, rpctest.Options{Start: 1_700_000_777})
	for i := range uint64(80) {
		for _, chain := range []*rpctest.Chain{c, other} {
			chain.Mine(chain.Register(i, rpctest.Account(1), "https://a"))
		}
	}
	var logs []types.Log
	for _, b := range other.Blocks() {
		logs = append(logs, b.Logs()...)
	}
	raw, err := json.Marshal(logs)
	if err != nil {
		t.Fatal(err)
	}
	db, asked := openStore(t), 0
	with := func(on *rpctest.Chain) archive.Compare {
		n, err := node.New(on.URL(), node.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		return func(ctx context.Context, blocks []repute.Block) error {
			asked += len(blocks)
			return archive.CompareWith(n)(ctx, blocks)
		}
	}
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), with(c)); !errors.Is(err,
		repute.ErrInvalid) || !strings.Contains(err.Error(), "on the chain it is") {
		t.Errorf("blocks of another chain: %v", err)
	}
	if list, err := query.Chains(t.Context(), db); err != nil || len(list) != 0 || asked != 50 {
		t.Errorf("%d chains were made, %v; %d blocks were compared", len(list), err, asked)
	}
	short := rpctest.New(t, rpctest.Options{})
	short.Mine()
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), with(short)); !errors.Is(err,
		repute.ErrInvalid) || !strings.Contains(err.Error(), "above the chain's newest block 1") {
		t.Errorf("blocks above the head: %v", err)
	}
	if _, err := archive.Import(t.Context(), db, chainOf(c), bytes.NewReader(raw), with(other)); err != nil {
		t.Errorf("the chain's own blocks: %v", err)
	}
	snapshot, _ := export(t, db, repute.BlockRange{})
	again := openStore(t)
	if _, err := archive.ImportSnapshot(t.Context(), again, strings.NewReader(snapshot),
		archive.SnapshotOptions{Compare: with(c), Chunk: 7}); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a snapshot of another chain: %v", err)
	}
	if list, err := query.Chains(t.Context(), again); err != nil || len(list) != 0 {
		t.Errorf("%d chains were made of the snapshot, %v", len(list), err)
	}
}
