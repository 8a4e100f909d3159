package synth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"repute"
)

var small = Spec{Shape: Base, Seed: 7, Events: 3_000}

// testDir keeps the small history for all tests of a run.
var testDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "synth-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func openHistory(t testing.TB, dir string, spec Spec) *History {
	t.Helper()
	h, err := Open(t.Context(), dir, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func get(t testing.TB) *History {
	t.Helper()
	return openHistory(t, testDir, small)
}

func records(t testing.TB, h *History) []repute.Record {
	t.Helper()
	var list []repute.Record
	if err := h.eachLog(func(r *repute.Record) error { list = append(list, *r); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestBlocks(t *testing.T) {
	h := get(t)
	var parent common.Hash
	var logs int
	for n := uint64(0); n <= h.Head(); n++ {
		header, hash, err := h.Header(n)
		if err != nil {
			t.Fatal(err)
		}
		if header.Hash() != hash || header.ParentHash != parent || header.Number.Uint64() != n {
			t.Fatalf("block %d: hash %s, computed %s, parent %s, before %s", n, hash, header.Hash(), header.ParentHash,
				parent)
		}
		if parent = hash; header.TxHash == types.EmptyTxsHash {
			continue
		}
		receipts, err := h.Receipts(n)
		if err != nil {
			t.Fatal(err)
		}
		logs += checkReceipts(t, h, header, receipts)
	}
	if logs != small.Events || h.Events() != small.Events {
		t.Errorf("%d logs, %d counted, asked for %d", logs, h.Events(), small.Events)
	}
	if found, ok := h.numberOf(parent); !ok || found != h.Head() {
		t.Errorf("the head's hash finds block %d, %v", found, ok)
	}
	if _, ok := h.numberOf(common.Hash{1}); ok {
		t.Error("found a block by a hash of none")
	}
}

func checkReceipts(t *testing.T, h *History, header *types.Header, receipts types.Receipts) (logs int) {
	t.Helper()
	n := header.Number.Uint64()
	b, _, _, err := h.neighbors(n)
	if err != nil {
		t.Fatal(err)
	}
	var txs types.Transactions
	for i, r := range receipts {
		txs = append(txs, chainTx(b.firstTx+uint64(i), r.Logs[0].Address))
		if txs[i].Hash() != r.TxHash || r.TransactionIndex != uint(i) {
			t.Fatalf("block %d: receipt %d is not that of its transaction", n, i)
		}
		for _, l := range r.Logs {
			if l.Index != uint(logs) || l.BlockHash != header.Hash() || l.BlockTimestamp != header.Time ||
				l.TxHash != r.TxHash {
				t.Fatalf("block %d: log %d is out of place: %+v", n, logs, l)
			}
			logs++
		}
	}
	if got := types.DeriveSha(receipts, trie.NewStackTrie(nil)); got != header.ReceiptHash {
		t.Fatalf("block %d: receipts root %s, header %s", n, got, header.ReceiptHash)
	}
	if got := types.DeriveSha(txs, trie.NewStackTrie(nil)); got != header.TxHash {
		t.Fatalf("block %d: transactions root %s, header %s", n, got, header.TxHash)
	}
	if types.MergeBloom(receipts) != header.Bloom {
		t.Fatalf("block %d: bloom differs", n)
	}
	return logs
}

func TestDeterministic(t *testing.T) {
	spec := Spec{Shape: Base, Seed: 3, Events: 3_000}
	one, two := openHistory(t, t.TempDir(), spec), openHistory(t, t.TempDir(), spec)
	other := spec
	other.Seed = 4
	three := openHistory(t, t.TempDir(), other)
	for _, name := range []string{logsFile, blocksFile, metaFile, stateFile} {
		a, b, c := fileSum(t, one, name), fileSum(t, two, name), fileSum(t, three, name)
		if a != b {
			t.Errorf("%s differs between two builds", name)
		}
		if a == c {
			t.Errorf("%s is the same for another seed", name)
		}
	}
	if _, hash, err := one.Header(0); err != nil {
		t.Error(err)
	} else if _, ok := three.numberOf(hash); ok {
		t.Error("histories of two seeds share their first block")
	}
}

func fileSum(t *testing.T, h *History, name string) [32]byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(raw)
}

func TestOpenReuses(t *testing.T) {
	dir, spec := t.TempDir(), Spec{Shape: Busy, Events: 2_000}
	h := openHistory(t, dir, spec)
	before, err := os.Stat(filepath.Join(h.dir, logsFile))
	if err != nil {
		t.Fatal(err)
	}
	again := openHistory(t, dir, spec)
	after, err := os.Stat(filepath.Join(again.dir, logsFile))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("built again: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestOpenCleansUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if _, err := Open(ctx, dir, small); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled build: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("a cancelled build left %v", left)
	}
}

func TestSpecRefused(t *testing.T) {
	for _, spec := range []Spec{{Shape: "odd", Events: 5_000}, {Shape: Base}, {Shape: Base, Events: MaxEvents + 1}} {
		if _, err := Open(t.Context(), t.TempDir(), spec); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%+v: %v", spec, err)
		}
	}
}

func TestBusy(t *testing.T) {
	h := openHistory(t, t.TempDir(), Spec{Shape: Busy, Events: 3_000})
	if n := h.meta.Counts["NewFeedback"]; n != 3_000 {
		t.Errorf("%d ratings", n)
	}
	full := 0
	for n := uint64(deployBlock + 2); n <= h.LastEvent(); n++ {
		logs, err := h.Logs(n)
		if err != nil || len(logs) != 10 {
			t.Fatalf("block %d holds %d logs, %v", n, len(logs), err)
		}
		full++
	}
	if full != 300 {
		t.Errorf("%d full blocks", full)
	}
	newLegality().check(t, records(t, h))
}

// The figures that make the history what it claims to be.
func TestDistribution(t *testing.T) {
	h := openHistory(t, t.TempDir(), Spec{Shape: Base, Events: 30_000})
	perAgent, perPair, reviewers := map[uint32]int{}, map[pair]int{}, map[uint32]map[party]bool{}
	revoked, negative, forms, vouch, total := 0, 0, map[text]int{}, 0, 0
	for i := range h.ratings {
		r := &h.ratings[i]
		total++
		perAgent[r.Token]++
		perPair[pair{r.Token, r.Client}]++
		if reviewers[r.Token] == nil {
			reviewers[r.Token] = map[party]bool{}
		}
		reviewers[r.Token][r.Client] = true
		if r.Revoked != (point{}) {
			revoked++
		}
		if r.Value.Value < 0 {
			negative++
		}
		if r.Tag1 == tagVouch {
			vouch++
		}
	}
	s := h.Spec()
	heavy := uint32(s.scaled(25_975, 5))
	if want := s.scaled(41_331, 0) + s.scaled(242_741, 0); perAgent[heavy] != want || len(reviewers[heavy]) != 62 {
		t.Errorf("the heavy agent has %d records of %d clients, want %d of 62", perAgent[heavy],
			len(reviewers[heavy]), want)
	}
	if got, want := perPair[pair{heavy, clients}], s.scaled(41_331, 0); got != want {
		t.Errorf("the heaviest pair has %d records, want %d", got, want)
	}
	var counts []int
	for _, of := range reviewers {
		counts = append(counts, len(of))
	}
	slices.Sort(counts)
	if median, p99 := counts[len(counts)/2], counts[len(counts)*99/100]; median != 1 || p99 > 40 {
		t.Errorf("reviewers per agent: median %d, 99th percentile %d", median, p99)
	}
	if share := 100 * vouch / total; share < 60 || share > 72 {
		t.Errorf("%d %% of the feedback has the common tag", share)
	}
	if revoked == 0 || revoked > total/500 || negative == 0 || negative > total/500 {
		t.Errorf("%d revoked, %d negative of %d", revoked, negative, total)
	}
	for _, r := range records(t, h) {
		if e, ok := r.Event.(repute.Registered); ok {
			forms[formOf(e.URI)]++
		}
	}
	n := h.meta.Counts["Registered"]
	if empty, data := 100*forms[0]/n, 100*forms[formDocument]/n; empty < 49 || empty > 58 || data < 32 || data > 42 {
		t.Errorf("%d %% empty, %d %% data URIs", empty, data)
	}
	kinds := slices.Collect(maps.Keys(h.meta.Counts))
	if len(kinds) != 15 {
		t.Errorf("events of %d kinds: %v", len(kinds), kinds)
	}
}

func formOf(uri string) text {
	switch {
	case uri == "":
		return 0
	case bytes.HasPrefix([]byte(uri), []byte("data:application/json;base64,")):
		return formDocument
	}
	return formWeb
}

func TestTextsDiffer(t *testing.T) {
	seen := map[string]text{}
	for form := formDocument; form <= formRequest; form += formDocument {
		for n := range text(500) {
			s := (form | n).String()
			if other, ok := seen[s]; ok || s == "" {
				t.Fatalf("%x and %x are both %q", form|n, other, s)
			}
			seen[s] = form | n
		}
	}
}

func TestDumpFails(t *testing.T) {
	if err := get(t).WriteDump(failingWriter{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("dump into a failing writer: %v", err)
	}
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
