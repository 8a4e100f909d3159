package archive

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
	"repute/store"
	"repute/store/importdb"
)

// Import merges recorded logs into the imported chain c, all or nothing. The input is JSON: a list of logs,
// one log per line, JSON-RPC answers, receipts, or objects that contain any of these. It has at most 1 GiB
// and 2 million logs. The blocks covered are those the input says it was asked for, else
// from its first to its last log. Logs of other contracts and events that are no
// registry's are passed over; a registry log that cannot be read is stored as a
// gap (see repute.Undecoded). Logs from before the known deployment of the chain's registry
// are refused, and so are those of which compare, when it is not nil, refuses the blocks.
// Errors of the input are ErrInvalid, a chain that is followed is ErrConflict.
func Import(ctx context.Context, db *store.DB, c repute.Chain, r io.Reader, compare Compare) (importdb.ImportResult,
	error) {
	rec, err := readLogs(r, maxInput, maxLogs)
	if err != nil {
		return importdb.ImportResult{}, err
	}
	if rec.ChainID != 0 && rec.ChainID != c.ID {
		return importdb.ImportResult{},
			repute.Invalid("chain", fmt.Sprintf("the logs are of chain %d, not %d", rec.ChainID, c.ID),
				"name the chain the logs were recorded on")
	}
	records, err := rec.decode(contracts.NewDecoder(c))
	if err != nil {
		return importdb.ImportResult{}, err
	}
	blocks, err := rec.blocks()
	if err != nil {
		return importdb.ImportResult{}, err
	}
	covered, err := rec.covered()
	if err != nil {
		return importdb.ImportResult{}, err
	}
	if len(records) > 0 {
		if wrong := beforeDeployment(c, records[0].Log.BlockNumber); wrong != "" {
			return importdb.ImportResult{},
				repute.Invalid("logs", wrong, "name the chain that the logs were recorded on; nothing was stored")
		}
	}
	if err := compare.compare(ctx, blocks); err != nil {
		return importdb.ImportResult{}, err
	}
	c.Imported = true
	return importdb.Import(ctx, db, c, records, blocks, covered)
}

// badInput returns the error of a line of a log file that cannot be read. Such files are stored
// whole or not at all.
func badInput(line int, format string, args ...any) error {
	return repute.Invalid("logs", fmt.Sprintf("line %d: %s", line, fmt.Sprintf(format, args...)), "nothing was stored")
}

// decode brings the logs into chain order, once each, with their events.
func (rec recording) decode(d contracts.Decoder) ([]repute.Record, error) {
	slices.SortStableFunc(rec.Logs, func(a, b recordedLog) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	records := make([]repute.Record, 0, len(rec.Logs))
	for i, l := range rec.Logs {
		if i > 0 && l.BlockNumber == rec.Logs[i-1].BlockNumber && l.Index == rec.Logs[i-1].Index {
			if !node.SameLog(rec.Logs[i-1].Log, l.Log) {
				return nil, badInput(l.Line, "another log than line %d at block %d, index %d", rec.Logs[i-1].Line,
					l.BlockNumber,
					l.Index)
			}
			continue
		}
		if e, ours := d.Decode(l.Log); ours {
			records = append(records, repute.Record{Log: l.Log, Time: node.BlockOf(&l.Log).Time, Event: e})
		}
	}
	if len(records) == 0 && len(rec.Logs) > 0 {
		return nil, badInput(rec.Logs[0].Line, "none of the %d logs is of this chain's registries: %s", len(rec.Logs),
			hexes(d.Addresses))
	}
	return records, nil
}

// hexes lists addresses for an error text.
func hexes(list []common.Address) string {
	text := ""
	for _, a := range list {
		text += " " + a.Hex()
	}
	return text
}

// blocks returns the headers as far as the logs contain them.
func (rec recording) blocks() ([]repute.Block, error) {
	var blocks []repute.Block
	for _, l := range rec.Logs { // in block order by now
		b := node.BlockOf(&l.Log)
		if n := len(blocks); n == 0 || blocks[n-1].Number != b.Number {
			blocks = append(blocks, b)
		} else if err := agree(&blocks[n-1], b, l.Line); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(blocks, func(b repute.Block) bool { return b.Hash == (common.Hash{}) }), nil
}

// agree completes known by what another log of the same block contains, and refuses a
// contradiction.
func agree(known *repute.Block, b repute.Block, line int) error {
	if known.Hash == (common.Hash{}) {
		known.Hash = b.Hash
	}
	if b.Hash != (common.Hash{}) && known.Hash != b.Hash {
		return badInput(line, "block %d has hash %s here and %s before", b.Number, b.Hash, known.Hash)
	}
	if known.Time.IsZero() {
		known.Time = b.Time
	}
	if !b.Time.IsZero() && !known.Time.Equal(b.Time) {
		return badInput(line, "block %d has time %s here and %s before", b.Number, b.Time.Format(time.RFC3339),
			known.Time.Format(time.RFC3339))
	}
	return nil
}

// covered returns the ranges of blocks of which the recording has all logs.
func (rec recording) covered() ([]repute.BlockRange, error) {
	if len(rec.Logs) == 0 {
		if rec.Range == nil {
			return nil, repute.Invalid("logs", "no logs in the input",
				"a JSON array of logs, one log per line, JSON-RPC answers or receipts")
		}
		return []repute.BlockRange{*rec.Range}, nil
	}
	first, last := rec.Logs[0], rec.Logs[len(rec.Logs)-1]
	if rec.Range == nil {
		return []repute.BlockRange{{From: first.BlockNumber, To: last.BlockNumber}}, nil
	}
	for _, l := range []recordedLog{first, last} {
		if l.BlockNumber < rec.Range.From || l.BlockNumber > rec.Range.To {
			return nil, badInput(l.Line, "block %d is outside the input's blockRange %d..%d", l.BlockNumber,
				rec.Range.From,
				rec.Range.To)
		}
	}
	return []repute.BlockRange{*rec.Range}, nil
}
