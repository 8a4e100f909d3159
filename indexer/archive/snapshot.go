package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/importdb"
)

const (
	// maxSnapshotLine bounds one line, in bytes: no block has enough gas for a larger log in hex.
	maxSnapshotLine = 64 << 20
	// chunkBytes bounds the lines of one commit, in bytes, whatever the number of logs.
	chunkBytes = 32 << 20
)

// SnapshotOptions are the options of ImportSnapshot.
type SnapshotOptions struct {
	// Chain is the expected chain: the snapshot must have the same registries, and Chain's name and
	// allow-list are used. Nil: the chain of the snapshot.
	Chain *repute.Chain
	// Chunk is how many logs are committed together, or more where a block has more; 0: 10,000.
	Chunk int
	// Compare, when not nil, refuses blocks that are not the chain's, of each chunk before it
	// is stored.
	Compare Compare
	// Progress, when not nil, is called after every commit.
	Progress func(SnapshotProgress)
}

// SnapshotProgress is the progress of an import.
type SnapshotProgress struct {
	Chain  repute.Chain
	Blocks repute.BlockRange // of the whole snapshot
	Block  uint64            // the newest block that is stored
	Events int               // logs read so far, including those that were stored before
}

// IsSnapshot reports whether r begins like a snapshot (see Export). It consumes nothing.
func IsSnapshot(r *bufio.Reader) bool {
	const first = `{"format":"repute-events`
	head, _ := r.Peek(len(first))
	return string(head) == first
}

// SnapshotChain returns the chain in the first line of a snapshot without consuming it; false if
// there is no valid snapshot.
func SnapshotChain(r *bufio.Reader) (repute.Chain, bool) {
	head, _ := r.Peek(r.Size())
	line, _, whole := bytes.Cut(head, []byte{'\n'})
	var h snapshotHeader
	if !whole || json.Unmarshal(line, &h) != nil || h.check() != "" {
		return repute.Chain{}, false
	}
	return h.chain(), true
}

// ImportSnapshot merges a snapshot into an imported chain, in chunks of whole blocks: an
// interrupted import is completed by repeating it. Memory does not grow with the size of the
// snapshot. Errors of the input are ErrInvalid and name the line; a chain that is followed is
// ErrConflict.
func ImportSnapshot(ctx context.Context, db *store.DB, r io.Reader, o SnapshotOptions) (importdb.ImportResult, error) {
	o.Chunk = cmp.Or(o.Chunk, 10_000)
	in := &snapshotReader{lines: bufio.NewScanner(r), opts: o,
		total: importdb.ImportResult{Applied: map[string]int{}, Waiting: map[string]int{}}}
	in.lines.Buffer(make([]byte, 0, 1<<16), maxSnapshotLine)
	err := in.run(ctx, db)
	if late := in.settle(); late != nil { // a chunk may still be stored concurrently
		err = late
	}
	return in.total, err
}

// run reads on while the chunk before is stored.
func (in *snapshotReader) run(ctx context.Context, db *store.DB) error {
	if err := in.begin(); err != nil {
		return err
	}
	for {
		line, err := in.next()
		if err != nil {
			return err
		}
		log, end, err := in.parse(line)
		switch {
		case err != nil:
			return err
		case end:
			return in.finish(ctx, db)
		}
		if in.full() && log.BlockNumber > in.newest() {
			if err := in.commit(ctx, db, log.BlockNumber-1, nil); err != nil {
				return err
			}
		}
		if err := in.add(log, len(line)); err != nil {
			return err
		}
	}
}

// snapshotReader is the state of one import.
type snapshotReader struct {
	lines   *bufio.Scanner
	line    int
	opts    SnapshotOptions
	header  snapshotHeader
	chain   repute.Chain
	decoder contracts.Decoder
	foreign []common.Hash // topics that any contract may emit

	held  []repute.Record // of the chunk
	bytes int
	gaps  []chaindb.Gap // not yet committed
	from  uint64        // the first block that is not committed
	read  int           // logs
	total importdb.ImportResult

	storing chan stored // the chunk that is being stored, nil for none
}

// stored is the result of storing a chunk.
type stored struct {
	importdb.ImportResult
	progress SnapshotProgress
	err      error
}

// bad returns the error of a line of a snapshot. Snapshots are stored in portions, so earlier
// blocks may be stored by then.
func (in *snapshotReader) bad(format string, args ...any) error {
	return repute.Invalid("snapshot", fmt.Sprintf("line %d: %s", in.line, fmt.Sprintf(format, args...)),
		"blocks before it may be stored; import a whole file to complete them")
}

// next returns the next non-empty line.
func (in *snapshotReader) next() ([]byte, error) {
	for in.lines.Scan() {
		in.line++
		if line := bytes.TrimSpace(in.lines.Bytes()); len(line) > 0 {
			return line, nil
		}
	}
	in.line++
	switch err := in.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, in.bad("longer than %d bytes", maxSnapshotLine)
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return nil, in.bad("the snapshot ends before its end: it was cut short")
}

// begin reads the header and refuses a snapshot of another chain, of other registries or of an
// unknown format before anything is stored.
func (in *snapshotReader) begin() error {
	line, err := in.next()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(line, &in.header); err != nil {
		return in.bad("not a snapshot's header: %v", err)
	}
	if wrong := in.header.check(); wrong != "" {
		return in.bad("%s", wrong)
	}
	in.chain, in.from = in.header.chain(), in.header.BlockRange.From
	if c := in.opts.Chain; c != nil {
		if c.ID != in.chain.ID || c.Identity != in.chain.Identity || c.Reputation != in.chain.Reputation {
			return in.bad("the snapshot is of chain %d with registries %s and %s, not of chain %d with %s and %s",
				in.chain.ID, in.chain.Identity, in.chain.Reputation, c.ID, c.Identity, c.Reputation)
		}
		in.chain.Name, in.chain.Validations, in.chain.Gateways = c.Name, c.Validations, c.Gateways
	}
	for _, g := range in.header.Gaps {
		in.gaps = append(in.gaps, g.gap())
	}
	unlisted := slices.DeleteFunc(slices.Clone(in.chain.Validations),
		func(v common.Address) bool { return slices.Contains(in.header.Validations, v) })
	added := slices.DeleteFunc(slices.Clone(in.chain.Gateways), func(g repute.WatchedContract) bool {
		return slices.ContainsFunc(in.header.Gateways, func(h snapshotGateway) bool { return h.Address == g.Address })
	})
	in.gaps = append(in.gaps, chaindb.HistoryGaps(unlisted, added, repute.BlockRange(in.header.BlockRange))...)
	in.decoder, in.foreign = contracts.NewDecoder(in.chain), contracts.ValidationTopics()
	return nil
}

// parse reads a log, or the end.
func (in *snapshotReader) parse(line []byte) (l types.Log, end bool, err error) {
	if bytes.HasPrefix(line, []byte(`{"end"`)) {
		var e snapshotEnd
		if err := json.Unmarshal(line, &e); err != nil || e.End == nil {
			return l, false, in.bad("not the end of a snapshot")
		}
		if e.End.Events != in.read {
			return l, false, in.bad("%d logs were announced, %d are there", e.End.Events, in.read)
		}
		return l, true, nil
	}
	if err := json.Unmarshal(line, &l); err != nil {
		if err.Error() == "unexpected end of JSON input" {
			return l, false, in.bad("the snapshot ends in the middle of a log: it was cut short")
		}
		return l, false, in.bad("not a log: %v", err)
	}
	switch r := in.header.BlockRange; {
	case l.BlockNumber < r.From || l.BlockNumber > r.To:
		return l, false, in.bad("block %d is outside of blocks %d to %d", l.BlockNumber, r.From, r.To)
	case l.Removed || l.Index > 1<<31-1 || l.TxIndex > 1<<31-1:
		return l, false, in.bad("log %d of block %d was removed or is at an impossible place", l.Index, l.BlockNumber)
	case l.BlockTimestamp >= node.TimesEnd:
		return l, false, in.bad("log %d of block %d is of time %d", l.Index, l.BlockNumber, l.BlockTimestamp)
	case l.BlockNumber < in.from || !in.after(&l):
		return l, false, in.bad("log %d of block %d is out of order", l.Index, l.BlockNumber)
	}
	return l, false, nil
}

// after reports whether the log follows the last one of the chunk.
func (in *snapshotReader) after(l *types.Log) bool {
	if len(in.held) == 0 {
		return true
	}
	last := &in.held[len(in.held)-1].Log
	return l.BlockNumber > last.BlockNumber || l.BlockNumber == last.BlockNumber && l.Index > last.Index
}

// add checks one log and adds it to the chunk. Events of validation contracts that are not listed
// are accepted if the options request them.
func (in *snapshotReader) add(l types.Log, size int) error {
	e, ours := in.decoder.Decode(l)
	if !ours && len(l.Topics) > 0 && slices.Contains(in.foreign, l.Topics[0]) {
		var err error
		if e, err = contracts.Read(l); err != nil {
			return in.bad("log %d of block %d: %v", l.Index, l.BlockNumber, err)
		}
		ours = true
	}
	if !ours {
		return in.bad("log %d of block %d is no event of these registries", l.Index, l.BlockNumber)
	}
	if wrong := beforeDeployment(in.chain, l.BlockNumber); in.read == 0 && wrong != "" { // the first is the oldest
		return in.bad("%s", wrong)
	}
	if err := in.sameBlock(&l); err != nil {
		return err
	}
	in.held = append(in.held, repute.Record{Log: l, Time: node.BlockOf(&l).Time, Event: e})
	in.bytes += size
	in.read++
	return nil
}

// sameBlock refuses a log whose block differs from the block of the same number in the log before
// it or in the header.
func (in *snapshotReader) sameBlock(l *types.Log) error {
	b, others := node.BlockOf(l), []repute.Block{in.header.last()}
	if n := len(in.held); n > 0 {
		others = append(others, node.BlockOf(&in.held[n-1].Log))
	}
	for _, o := range others {
		switch {
		case o.Number != b.Number:
		case o.Hash != (common.Hash{}) && b.Hash != (common.Hash{}) && o.Hash != b.Hash:
			return in.bad("block %d has hash %s here and %s elsewhere", b.Number, b.Hash, o.Hash)
		case !o.Time.IsZero() && !b.Time.IsZero() && !o.Time.Equal(b.Time):
			return in.bad("block %d has time %s here and %s elsewhere", b.Number, b.Time.Format(time.RFC3339),
				o.Time.Format(time.RFC3339))
		}
	}
	return nil
}

// full reports whether the portion is large enough to be stored, by the number of logs or by their
// size.
func (in *snapshotReader) full() bool { return len(in.held) >= in.opts.Chunk || in.bytes >= chunkBytes }

// newest returns the block of the last log of the chunk.
func (in *snapshotReader) newest() uint64 {
	if len(in.held) == 0 {
		return 0
	}
	return in.held[len(in.held)-1].Log.BlockNumber
}

// finish stores the last portion up to the end of the range, so that blocks without events count
// as indexed too.
func (in *snapshotReader) finish(ctx context.Context, db *store.DB) error {
	var last []repute.Block
	if b := in.header.last(); b.Hash != (common.Hash{}) {
		last = append(last, b)
	}
	return in.commit(ctx, db, in.header.BlockRange.To, last)
}

// commit starts to store the chunk, which holds everything up to block to, after the chunk before
// it is stored.
func (in *snapshotReader) commit(ctx context.Context, db *store.DB, to uint64, headers []repute.Block) error {
	var covered []repute.BlockRange
	for _, r := range in.header.Covered {
		if part := (repute.BlockRange{From: max(r.From, in.from), To: min(r.To, to)}); part.From <= part.To {
			covered = append(covered, part)
		}
	}
	if err := in.opts.Compare.compare(ctx, append(in.heldBlocks(), headers...)); err != nil {
		return err
	}
	if err := in.settle(); err != nil {
		return err
	}
	storing, records, gaps := make(chan stored, 1), in.held, in.gaps
	s := stored{progress: SnapshotProgress{Chain: in.chain, Blocks: repute.BlockRange(in.header.BlockRange), Block: to,
		Events: in.read}}
	go func() {
		s.ImportResult, s.err = importdb.Import(ctx, db, in.chain, records, headers, covered, gaps...)
		storing <- s
	}()
	in.storing, in.held, in.gaps, in.bytes, in.from = storing, nil, nil, 0, to+1
	return nil
}

// heldBlocks returns the blocks of the chunk's logs.
func (in *snapshotReader) heldBlocks() (blocks []repute.Block) {
	for i := range in.held {
		if b := node.BlockOf(&in.held[i].Log); len(blocks) == 0 || blocks[len(blocks)-1].Number != b.Number {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// settle waits for the chunk that is being stored.
func (in *snapshotReader) settle() error {
	if in.storing == nil {
		return nil
	}
	s := <-in.storing
	in.storing = nil
	if s.err != nil {
		return s.err
	}
	in.sum(s.ImportResult)
	if in.opts.Progress != nil {
		in.opts.Progress(s.progress)
	}
	return nil
}

// sum adds a portion's counts to the total. Agents and pending events are states and not
// increments: the newest value counts.
func (in *snapshotReader) sum(r importdb.ImportResult) {
	in.total.Events += r.Events
	in.total.Duplicates += r.Duplicates
	in.total.Agents, in.total.Pending = r.Agents, r.Pending
	for name, n := range r.Applied {
		in.total.Applied[name] += n
	}
	for name, n := range r.Waiting {
		in.total.Waiting[name] += n
	}
}
