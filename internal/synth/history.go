package synth

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Position names one log of a history.
type Position struct{ Block, LogIndex uint64 }

// History is a built history. It is safe for concurrent use until Close.
type History struct {
	dir  string
	meta meta
	enc  *encoder

	lines  *os.File
	index  *os.File
	byHash []hashEntry // by the first bytes of the hash

	tables // in the order of their keys
}

// hashEntry finds a block by the first eight bytes of its hash.
type hashEntry struct {
	prefix uint64
	number uint32
}

// Open opens the history of a spec under dir, building it when it is not there. Several may live in one
// directory. Building writes about 1.3 GB per million events.
func Open(ctx context.Context, dir string, spec Spec) (*History, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	key, err := spec.key()
	if err != nil {
		return nil, err
	}
	return openAt(ctx, dir, key, spec)
}

// openAt opens the history with a key, and builds it first where its description is missing: that file is written last.
func openAt(ctx context.Context, parent, key string, spec Spec) (*History, error) {
	dir := filepath.Join(parent, key)
	if _, err := os.Stat(filepath.Join(dir, metaFile)); err != nil {
		if err := build(ctx, parent, dir, spec); err != nil {
			return nil, err
		}
	}
	return load(dir)
}

// build writes a history next to dir and renames it when it is complete. When another process was
// faster, its equal one stays.
func build(ctx context.Context, parent, dir string, spec Spec) error {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	draft, err := os.MkdirTemp(parent, "building-")
	if err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	defer os.RemoveAll(draft) // it was renamed when the build succeeded
	e := newEncoder()
	w, err := newWriter(draft, spec, e)
	if err != nil {
		return err
	}
	defer w.close()
	s, err := generate(ctx, spec, w, e)
	if err != nil {
		return fmt.Errorf("build history: %w", err)
	}
	if err := w.finish(s); err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil {
		if _, gone := os.Stat(filepath.Join(dir, metaFile)); gone != nil {
			return fmt.Errorf("build history: %w", err)
		}
	}
	return nil
}

// load opens the files of a whole history.
func load(dir string) (h *History, err error) {
	h = &History{dir: dir, enc: newEncoder()}
	defer func() {
		if err != nil {
			h.Close()
		}
	}()
	raw, err := os.ReadFile(filepath.Join(dir, metaFile))
	if err == nil {
		err = json.Unmarshal(raw, &h.meta)
	}
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	if h.lines, err = os.Open(filepath.Join(dir, logsFile)); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	if h.index, err = os.Open(filepath.Join(dir, blocksFile)); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	defer f.Close()
	if err := h.tables.load(bufio.NewReaderSize(f, 1<<20)); err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	return h, h.indexHashes()
}

// indexHashes reads the hash of every block.
func (h *History) indexHashes() error {
	h.byHash = make([]hashEntry, 0, h.meta.Blocks)
	err := h.eachBlock(func(number uint64, raw []byte) error {
		h.byHash = append(h.byHash, hashEntry{binary.BigEndian.Uint64(raw), uint32(number)})
		return nil
	})
	slices.SortFunc(h.byHash, func(a, b hashEntry) int { return cmp.Compare(a.prefix, b.prefix) })
	return err
}

// eachBlock passes the stored form of every block in order.
func (h *History) eachBlock(fn func(number uint64, raw []byte) error) error {
	const together = 1024
	buf := make([]byte, together*blockSize)
	for first := uint64(0); first < h.meta.Blocks; first += together {
		n := min(together, h.meta.Blocks-first)
		if _, err := h.index.ReadAt(buf[:n*blockSize], int64(first*blockSize)); err != nil {
			return fmt.Errorf("read blocks: %w", err)
		}
		for i := range n {
			if err := fn(first+i, buf[i*blockSize:][:blockSize]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the files.
func (h *History) Close() error {
	var err error
	for _, f := range []*os.File{h.lines, h.index} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Spec is what the history was made from, nothing left open.
func (h *History) Spec() Spec { return h.meta.Spec }

// Events is how many logs there are.
func (h *History) Events() int {
	n := 0
	for _, count := range h.meta.Counts {
		n += count
	}
	return n
}

// Head is the number of the newest block. The one with the newest log lies
// below the finalized block.
func (h *History) Head() uint64 { return h.meta.Blocks - 1 }

// safe returns the block of the tag "safe".
func (h *History) safe() uint64 { return h.meta.LastEvent + safeAbove }

// finalized returns the block of the tag "finalized".
func (h *History) finalized() uint64 { return h.meta.LastEvent + finalizedAbove }

// LastEvent is the newest block that holds logs.
func (h *History) LastEvent() uint64 { return h.meta.LastEvent }

// neighbors reads a block with its parent's hash and the end of its lines.
func (h *History) neighbors(number uint64) (b block, parent common.Hash, end uint64, err error) {
	first, count := number, uint64(1)
	if number > 0 {
		first, count = number-1, 2
	}
	if number < h.Head() {
		count++
	}
	buf := make([]byte, count*blockSize)
	if _, err := h.index.ReadAt(buf, int64(first*blockSize)); err != nil {
		return b, parent, 0, fmt.Errorf("block %d: %w", number, err)
	}
	if number > 0 {
		parent = common.Hash(buf[:common.HashLength])
		buf = buf[blockSize:]
	}
	b = readBlock(buf)
	if number < h.Head() {
		return b, parent, readBlock(buf[blockSize:]).offset, nil
	}
	info, err := h.lines.Stat()
	if err != nil {
		return b, parent, 0, fmt.Errorf("block %d: %w", number, err)
	}
	return b, parent, uint64(info.Size()), nil
}

// Header returns a block's header and hash.
func (h *History) Header(number uint64) (*types.Header, common.Hash, error) {
	if number > h.Head() {
		return nil, common.Hash{}, fmt.Errorf("block %d: %w", number, repute.ErrNotFound)
	}
	b, parent, _, err := h.neighbors(number)
	if err != nil {
		return nil, common.Hash{}, err
	}
	return b.header(number, parent, h.meta.Spec.Seed), b.hash, nil
}

// numberOf finds a block by hash.
func (h *History) numberOf(hash common.Hash) (uint64, bool) {
	prefix := binary.BigEndian.Uint64(hash[:])
	i, _ := slices.BinarySearchFunc(h.byHash, prefix,
		func(e hashEntry, p uint64) int { return cmp.Compare(e.prefix, p) })
	for ; i < len(h.byHash) && h.byHash[i].prefix == prefix; i++ {
		number := uint64(h.byHash[i].number)
		if b, _, _, err := h.neighbors(number); err == nil && b.hash == hash {
			return number, true
		}
	}
	return 0, false
}

// lineSpan is where the lines of a range of blocks are in the file.
func (h *History) lineSpan(from, to uint64) (start, end uint64, err error) {
	first, _, _, err := h.neighbors(from)
	if err != nil {
		return 0, 0, err
	}
	_, _, end, err = h.neighbors(to)
	return first.offset, end, err
}

// read reads lines by their place in the file.
func (h *History) read(start, end uint64) ([]byte, error) {
	raw := make([]byte, end-start)
	if _, err := h.lines.ReadAt(raw, int64(start)); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read logs: %w", err)
	}
	return raw, nil
}

// Logs returns the logs of one block in order.
func (h *History) Logs(number uint64) ([]*types.Log, error) {
	start, end, err := h.lineSpan(number, number)
	if err != nil {
		return nil, err
	}
	return h.logsBetween(start, end)
}

// logsBetween returns the logs between two places in the file.
func (h *History) logsBetween(start, end uint64) ([]*types.Log, error) {
	raw, err := h.read(start, end)
	if err != nil {
		return nil, err
	}
	return parseLines(raw)
}

// transactionHashes returns the hashes of a block's transactions in order, as its lines name
// them: whole receipts would cost a benchmark more than what it measures.
func (h *History) transactionHashes(number uint64) ([]common.Hash, error) {
	start, end, err := h.lineSpan(number, number)
	if err != nil {
		return nil, err
	}
	raw, err := h.read(start, end)
	if err != nil {
		return nil, fmt.Errorf("transactions of block %d: %w", number, err)
	}
	hashes := []common.Hash{}
	var line []byte
	for len(raw) > 0 {
		line, raw = cutLine(raw)
		hash, err := lineTransaction(line)
		if err != nil {
			return nil, fmt.Errorf("transactions of block %d: %w", number, err)
		}
		if n := len(hashes); n == 0 || hashes[n-1] != hash {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// Receipts returns one receipt per transaction of a block, places filled in.
func (h *History) Receipts(number uint64) ([]*types.Receipt, error) {
	logs, err := h.Logs(number)
	if err != nil {
		return nil, err
	}
	receipts := []*types.Receipt{}
	for i := 0; len(logs) > 0; i++ {
		n := slices.IndexFunc(logs, func(l *types.Log) bool { return l.TxHash != logs[0].TxHash })
		if n < 0 {
			n = len(logs)
		}
		r := receipt(i, logs[0].TxHash, logs[:n])
		r.BlockHash, r.BlockNumber = logs[0].BlockHash, new(big.Int).SetUint64(number)
		receipts = append(receipts, r)
		logs = logs[n:]
	}
	return receipts, nil
}
