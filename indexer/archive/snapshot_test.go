package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/internal/rpctest"
)

// readSnapshot reads a snapshot as ImportSnapshot does, and stores nothing.
func readSnapshot(in string) (*snapshotReader, error) {
	r := &snapshotReader{lines: bufio.NewScanner(strings.NewReader(in))}
	r.lines.Buffer(make([]byte, 0, 1<<10), 1<<20)
	if err := r.begin(); err != nil {
		return r, err
	}
	for {
		line, err := r.next()
		if err != nil {
			return r, err
		}
		log, end, err := r.parse(line)
		if err != nil || end {
			return r, err
		}
		if err := r.add(log, len(line)); err != nil {
			return r, err
		}
	}
}

// smallSnapshot is a snapshot of two agents in blocks 3 and 5, of which the last one is of a time.
func smallSnapshot(t testing.TB, last uint64, end int64) string {
	t.Helper()
	registries := rpctest.Registries{Identity: common.Address{1}, Reputation: common.Address{2}}
	h := snapshotHeader{Format: snapshotFormat, ChainID: 5, Identity: registries.Identity,
		Reputation: registries.Reputation, StartBlock: 1, BlockRange: snapshotRange{1, 6},
		Covered: []snapshotRange{{1, 6}}, Last: snapshotLastBlock{Hash: common.Hash{6}, Time: end}}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	write := func(v any) {
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	write(h)
	events := 0
	for id, block := range []uint64{3, 5} {
		for i, l := range registries.Register(uint64(id), rpctest.Account(1), "u") {
			l.BlockNumber, l.BlockHash, l.Index = block, common.Hash{byte(block)}, uint(i)
			if l.BlockTimestamp = 1_700_000_000; block == 5 {
				l.BlockTimestamp = last
			}
			write(l)
			events++
		}
	}
	write(map[string]any{"end": map[string]int{"events": events}})
	return out.String()
}

// A time that no answer can show as text is refused before it is stored.
func TestSnapshotTimesAreBounded(t *testing.T) {
	t.Parallel()
	const fine = 1_700_000_100
	if r, err := readSnapshot(smallSnapshot(t, node.TimesEnd-1, node.TimesEnd-1)); err != nil || r.read != 8 {
		t.Fatalf("%d logs, %v", r.read, err)
	}
	for name, s := range map[string]string{
		"year 10000":         smallSnapshot(t, node.TimesEnd, fine),
		"not even a time":    smallSnapshot(t, math.MaxUint64, fine),
		"of the last block":  smallSnapshot(t, fine, node.TimesEnd),
		"largest last block": smallSnapshot(t, fine, math.MaxInt64),
	} {
		if _, err := readSnapshot(s); !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "time") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a file holds, its reader neither panics nor lets through what the store cannot keep.
func FuzzSnapshot(f *testing.F) {
	whole := smallSnapshot(f, 1_700_000_100, 1_700_000_200)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(strings.Replace(whole, `"chainId":5`, `"chainId":-5`, 1))
	f.Add(strings.Replace(whole, `"to":6`, `"to":18446744073709551615`, 1))
	f.Fuzz(func(t *testing.T, in string) {
		r, err := readSnapshot(in)
		if err != nil && !errors.Is(err, repute.ErrInvalid) {
			t.Fatalf("not the file's fault: %v", err)
		}
		for i, record := range r.held {
			l := &record.Log
			if l.BlockNumber < r.header.BlockRange.From || l.BlockNumber > r.header.BlockRange.To {
				t.Fatalf("block %d is outside of %+v", l.BlockNumber, r.header.BlockRange)
			}
			if err := node.CheckTime(repute.Block{Time: record.Time}); !record.Time.IsZero() && err != nil {
				t.Fatal(err)
			}
			if i > 0 && l.BlockNumber == r.held[i-1].Log.BlockNumber && l.Index <= r.held[i-1].Log.Index {
				t.Fatalf("log %d of block %d comes twice", l.Index, l.BlockNumber)
			}
		}
	})
}
