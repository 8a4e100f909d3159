package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/verify/state"
	"repute/indexer/verify/unchecked"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// CheckOptions selects what Check compares.
type CheckOptions struct {
	// From and To are blocks; 0 means from the start, and to the newest final block
	// or, of an imported chain, the newest stored one.
	From, To uint64
	// AllBlocks reads the receipts of every block, not only of those that hold
	// events or may by their blooms.
	AllBlocks bool
	// Repair puts what is missing in its place under Lease; see Verifier.Run.
	Repair bool
	Lease  store.Lease
}

// Difference is one contradiction between the index and the chain.
type Difference struct {
	Kind   repute.EventKind // 0 if it concerns the block itself and no event
	Agent  *repute.TokenID
	Client *common.Address
	Blocks repute.BlockRange // where the event must be
	What   string            // the stored value and the value on the chain
	// Total is the table of a stored total that does not follow from the stored events; "" for all other differences.
	// No event is missing for it, so that it is not repaired.
	Total string
	gap   gap
}

// CheckResult sums up a check. Nothing differs and everything was checked when
// Differences and Unproven are 0 and Unchecked is empty.
type CheckResult struct {
	Blocks      repute.BlockRange
	Checked     int // blocks whose receipts were compared
	Unproven    int // of these, whose receipts' root could not be recomputed
	Agents      int // whose state was compared at Blocks.To
	Differences int
	Repaired    int      // events put in their place
	Retimed     int      // blocks whose time was put right
	Unchecked   []string // what could not be compared, and why
}

// Check compares stored blocks again: the receipts of blocks with events, with recomputed roots,
// and of blocks whose bloom admits events that are not stored; then the state of all agents at the
// end of the range and their number; then the totals that lists and summaries answer with, at the newest block, with the
// stored events. It calls found with every difference. The error concerns the
// index itself or ctx; what could not be compared is in Unchecked.
func (v *Verifier) Check(ctx context.Context, o CheckOptions, found func(Difference)) (CheckResult, error) {
	at, err := verifydb.ReadStanding(ctx, v.db, v.chain.ID)
	if err != nil {
		return CheckResult{}, err
	}
	c := &check{v: v, o: o, at: at, found: found}
	if err := c.choose(); err != nil {
		return c.result, err
	}
	for _, step := range []func(context.Context) error{c.blocks, c.state, c.totals} {
		if err = step(ctx); err != nil {
			break
		}
	}
	c.result.Unchecked = c.left.Texts()
	return c.result, err
}

type check struct {
	v      *Verifier
	o      CheckOptions
	at     verifydb.Standing
	found  func(Difference)
	left   unchecked.List
	result CheckResult
}

// choose settles the range.
func (c *check) choose() error {
	r := repute.BlockRange{From: max(c.o.From, c.v.chain.StartBlock), To: c.o.To}
	newest := c.at.Pin.Number
	if c.v.chain.Imported || c.at.Pin.Hash == (common.Hash{}) {
		newest = c.at.Cursor
	}
	if r.To == 0 {
		r.To = newest
	}
	switch {
	case r.To > c.at.Cursor:
		return repute.Invalid("to", fmt.Sprintf("block %d is not stored", r.To),
			fmt.Sprintf("the newest stored block is %d", c.at.Cursor))
	case r.From > r.To:
		return repute.Invalid("from", fmt.Sprintf("block %d is above block %d", r.From, r.To), "a range of stored blocks")
	}
	c.result.Blocks = r
	return nil
}

// differ counts differences and passes each to the caller of Check.
func (c *check) differ(gaps []gap) {
	for _, h := range gaps {
		c.result.Differences++
		c.found(Difference{Kind: h.Kind, Agent: h.Agent, Client: h.Client, Blocks: h.Blocks, What: h.Reason, gap: h})
	}
}

// blocks compares the range in windows.
func (c *check) blocks(ctx context.Context) error {
	for from := c.result.Blocks.From; from <= c.result.Blocks.To; {
		r := repute.BlockRange{From: from, To: min(c.result.Blocks.To, from+c.v.opts.Window-1)}
		numbers, to, err := c.suspects(ctx, r)
		if err != nil {
			return err
		}
		for ; len(numbers) > 0; numbers = numbers[min(len(numbers), 4*judgedAtOnce):] {
			for _, j := range c.v.judgeSome(ctx, numbers[:min(len(numbers), 4*judgedAtOnce)]) {
				if err := c.block(ctx, j); err != nil {
					return err
				}
			}
		}
		from = to + 1
	}
	return nil
}

// suspects returns the blocks of a range whose receipts are to be read, and the end of the part
// that was examined: the next block with events may be far away.
func (c *check) suspects(ctx context.Context, r repute.BlockRange) ([]uint64, uint64, error) {
	if c.o.AllBlocks {
		return upTo(r.From, r.To), r.To, nil
	}
	if c.v.dense {
		r.To = c.result.Blocks.To
	}
	logs, to, err := verifydb.Logs(ctx, c.v.db, c.v.chain.ID, r, rereadLogs)
	if err != nil {
		return nil, 0, err
	}
	var numbers []uint64
	for i := range logs {
		numbers = append(numbers, logs[i].BlockNumber)
	}
	if !c.v.dense {
		looked := repute.BlockRange{From: r.From, To: to}
		w, err := c.v.readWindow(ctx, looked)
		switch {
		case ctx.Err() != nil:
			return nil, 0, ctx.Err()
		case err != nil:
			c.left.Blocks("headers of", looked, err)
		case w.dense():
			c.v.dense = true
			c.left.Add(fmt.Sprintf("blocks without events from %d on", r.From), errDense)
		default:
			numbers = append(numbers, w.toJudge(looked)...)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(numbers))), to, nil
}

// errDense is returned when the blooms admit everything, or exclude stored events.
var errDense = errors.New("the headers' blooms do not tell which blocks hold events; read the receipts of all blocks")

// block records the judgment of one block.
func (c *check) block(ctx context.Context, j blockResult) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if j.err != nil {
		c.left.Blocks("", repute.BlockRange{From: j.number, To: j.number}, j.err)
		return nil
	}
	c.result.Checked++
	if !j.proven {
		c.result.Unproven++
	}
	c.differ(c.v.blockGaps(j.judgment))
	if err := c.time(ctx, j.judgment); err != nil {
		return err
	}
	if !c.o.Repair || len(j.absent) == 0 {
		return nil
	}
	stored, err := c.v.storeMissing(ctx, c.o.Lease, c.at, []judgment{j.judgment})
	c.result.Repaired += stored
	return err
}

// time compares a stored block's time with that of its header, which the block's hash
// authenticates, and corrects it when Repair is set. An unknown time is not a difference.
func (c *check) time(ctx context.Context, j judgment) error {
	known, err := verifydb.Headers(ctx, c.v.db, c.v.chain.ID, []uint64{j.block.Number})
	stored := known[j.block.Number]
	if err != nil || !j.proven || stored.Time.IsZero() || stored.Time.Equal(j.block.Time) {
		return err
	}
	c.result.Differences++
	c.found(Difference{Blocks: repute.BlockRange{From: j.block.Number, To: j.block.Number},
		What: fmt.Sprintf("the block's time is %s, stored %s",
			j.block.Time.UTC().Format(time.RFC3339), stored.Time.Format(time.RFC3339))})
	if !c.o.Repair {
		return nil
	}
	if err := c.v.correctTime(ctx, c.o.Lease, stored, j.block.Block); err != nil {
		return err
	}
	c.result.Retimed++
	return nil
}

// state compares all agents at the end of the range.
func (c *check) state(ctx context.Context) error {
	if !c.at.Whole {
		c.left.Add("state", errPartial)
		return nil
	}
	end := repute.Block{Number: c.result.Blocks.To}
	for p := (part{Part: state.Part{First: true}}); ; p = (part{Part: state.Part{From: p.Next}}) {
		err := c.v.witnesses.First(func(n *node.Node) error { return c.v.compareAt(ctx, n, end, &p) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.left.Add(fmt.Sprintf("state at block %d", end.Number), err)
			return nil
		}
		c.result.Agents += p.Compared
		c.left.Views(p.Skipped)
		if err := c.settle(ctx, p.Gaps); err != nil {
			return err
		}
		if p.Next == 0 {
			return nil
		}
	}
}

// mostTotals is how many wrong totals are listed for each table and batch of agents: one fault can make all wrong.
const mostTotals = 100

// totals compares the stored totals of all agents with the stored events.
func (c *check) totals(ctx context.Context) error {
	blocks := repute.BlockRange{From: c.v.chain.StartBlock, To: c.at.Cursor}
	for after := (*repute.TokenID)(nil); ; {
		wrong, next, err := verifydb.WrongTotals(ctx, c.v.db, c.v.chain.ID, after, mostTotals)
		if err != nil {
			c.left.Add("stored totals", err)
			return ctx.Err()
		}
		for _, w := range wrong {
			c.result.Differences++
			c.found(Difference{Agent: &w.Agent, Blocks: blocks, Total: w.Table,
				What: fmt.Sprintf("%s (%s) is %s, the stored events give %s: repute reindex computes it again", w.Table, w.Key,
					w.Stored, w.Right)})
		}
		if after = next; after == nil {
			return nil
		}
	}
}

// errPartial: state is compared only where all blocks are stored.
var errPartial = errors.New("only parts of the chain's blocks are stored")

// settle reports the gaps that the comparison of states found, and searches their events if Repair
// is set.
func (c *check) settle(ctx context.Context, gaps []gap) error {
	c.differ(gaps)
	if !c.o.Repair {
		return nil
	}
	for _, h := range gaps {
		lacking, err := c.v.locate(ctx, c.at, h)
		if err != nil {
			c.left.Add("search for "+h.Subject, err)
			continue
		}
		stored, err := c.v.storeMissing(ctx, c.o.Lease, c.at, lacking)
		if err != nil {
			return err
		}
		c.result.Repaired += stored
	}
	return nil
}

// Report passes differences to the process that follows the chain, without a lease: missing events
// as gaps, for which it searches, and blocks with another time as blocks to compare again.
// Differences beyond the limit of a chain are omitted.
func (v *Verifier) Report(ctx context.Context, differences []Difference) error {
	var gaps []chaindb.Gap
	var blocks []uint64
	for _, d := range differences {
		switch {
		case d.Total != "": // no event is missing
		case d.Kind == 0:
			blocks = append(blocks, d.Blocks.From)
		default:
			gaps = append(gaps, d.gap)
		}
	}
	if _, err := verifydb.AskForBlocks(ctx, v.db, v.chain.ID, blocks); err != nil {
		return err
	}
	err := chaindb.OpenGaps(ctx, v.db, v.chain.ID, store.Lease{}, gaps)
	if errors.Is(err, chaindb.ErrGapsFull) {
		return nil // the chain is called incomplete already
	}
	return err
}
