package chaindb

import (
	"fmt"
	"time"

	"repute"
)

// blocksProof holds the final blocks of a chain that were compared, as of one snapshot.
type blocksProof struct {
	Ranges []provenRange // ascending
	Asked  int64         // blocks that are requested to be compared again
}

// provenRange is one connected range of blocks that were compared. First and Last are
// the oldest and the newest unproven one, nil when all are proven.
type provenRange struct {
	From, To    uint64
	First, Last *uint64
	Unproven    int64
	Reason      string
}

// completeness returns Complete only for one range from the start to the cursor without pending
// and unreadable events and without open gaps, whose final blocks are proven.
func (c *ChainView) completeness() repute.Completeness {
	out := repute.Completeness{VerifiedTo: c.provenTo(), Ranges: c.Ranges, Pending: c.Pending, Undecoded: c.Undecoded}
	blocks, why := c.blocks()
	out.Status, out.Reason = blocks, why
	open := int64(0)
	for _, n := range c.proof.Open {
		open += n
	}
	missing := c.Pending + c.Undecoded
	switch {
	case open > 0, missing > 0 && !c.Imported:
		out.Status, out.Reason = repute.Incomplete,
			fmt.Sprintf("%d events are known to be missing, %d wait for a missing one, %d cannot be read", open,
				c.Pending,
				c.Undecoded)
	case missing > 0:
		out.Status, out.Reason = repute.Partial,
			fmt.Sprintf("%d imported events wait for one that was not imported, %d cannot be read", c.Pending,
				c.Undecoded)
	}
	out.Kinds = c.kinds(blocks, why)
	return out
}

// kinds returns the completeness per kind of event. The status of the blocks applies to all.
func (c *ChainView) kinds(blocks repute.CompletenessStatus, why string) []repute.KindCompleteness {
	out := make([]repute.KindCompleteness, 0, repute.KindEIP712DomainChanged)
	for kind := repute.KindTransfer; kind <= repute.KindEIP712DomainChanged; kind++ {
		k := repute.KindCompleteness{Kind: kind, Status: blocks, Reason: why, VerifiedTo: c.proof.VerifiedTo[kind],
			Pending: c.proof.Pending[kind], Open: c.proof.Open[kind], Gaps: c.proof.Gaps[kind]}
		switch {
		case k.Open > 0, k.Pending > 0 && !c.Imported:
			k.Status, k.Reason = repute.Incomplete, fmt.Sprintf("%d are known to be missing, %d events wait for one",
				k.Open,
				k.Pending)
		case k.Pending > 0:
			k.Status, k.Reason = repute.Partial, fmt.Sprintf("%d imported events wait for one that was not imported",
				k.Pending)
		}
		out = append(out, k)
	}
	return out
}

// blocks returns whether the chain's blocks are indexed and proven, and the reason when they are
// not.
func (c *ChainView) blocks() (repute.CompletenessStatus, string) {
	final := uint64(max(0, min(c.Finalized, c.Cursor)))
	looked, unproven, newest := uint64(0), int64(0), provenRange{}
	for _, r := range c.proof.Blocks.Ranges {
		looked += r.To - r.From + 1
		if unproven += r.Unproven; r.Last != nil {
			newest = r
		}
	}
	switch {
	case !slicesWhole(c.Ranges, c.StartBlock, c.Cursor):
		return repute.Partial, fmt.Sprintf("not all blocks from %d on are indexed", c.StartBlock)
	case unproven > 0:
		why := fmt.Sprintf("%d final blocks could not be proven, the newest is %d", unproven, *newest.Last)
		if newest.Reason != "" {
			why += ": " + newest.Reason
		}
		return repute.Unproven, why
	case c.proof.Blocks.Asked > 0:
		return repute.Verifying, fmt.Sprintf("%d blocks are to be compared again", c.proof.Blocks.Asked)
	case c.Imported && looked == 0:
		return repute.Verifying, "imported blocks are compared once serve follows the chain"
	case final < c.StartBlock:
		return repute.Verifying, "no final block is known yet"
	case !c.lookedTo(final):
		return repute.Verifying, fmt.Sprintf("%d of %d final blocks were compared with the chain",
			min(looked, final-c.StartBlock+1), final-c.StartBlock+1)
	}
	return repute.Complete, ""
}

// lookedTo reports whether every block from the start on was compared, up to the newest
// final one less what may still be under way.
func (c *ChainView) lookedTo(final uint64) bool {
	first := c.firstRange()
	return first != nil && first.To+c.lagAllowed() >= final
}

// firstRange returns the range of compared blocks that holds the chain's start, nil when there
// is none.
func (c *ChainView) firstRange() *provenRange {
	if r := c.proof.Blocks.Ranges; len(r) > 0 && r[0].From <= c.StartBlock && r[0].To >= c.StartBlock {
		return &r[0]
	}
	return nil
}

// provenTo returns the block up to which every block from the start on is proven, 0 when the
// first one is not.
func (c *ChainView) provenTo() uint64 {
	r := c.firstRange()
	switch {
	case r == nil:
		return 0
	case r.First == nil:
		return r.To
	case *r.First <= c.StartBlock:
		return 0
	}
	return *r.First - 1
}

// ProvenTo is the SQL of provenTo of chain c.
const ProvenTo = `coalesce((
	select case when isempty(unproven) then to_block when lower(unproven) > c.start_block then lower(unproven) - 1 else 0 end
	from block_proofs p where p.chain_id = c.chain_id and c.start_block between from_block and to_block
	order by from_block limit 1), 0)`

// A chain counts as complete while its newest final blocks are being compared: blocks of ten
// minutes, at least as many as one request for headers reads, and at most as many as a comparison
// manages in that time.
const (
	lagTime  = 10 * time.Minute
	lagLeast = 32
	lagMost  = 4_096
)

// lagAllowed returns how many blocks of the newest final ones need not be compared yet, by the
// chain's mean block time since the oldest header that is kept.
func (c *ChainView) lagAllowed() uint64 {
	blocks, took := c.Cursor-c.oldest, c.cursorTime.Sub(c.oldestTime)
	if c.oldestTime.IsZero() || c.cursorTime.IsZero() || blocks <= 0 || took <= 0 {
		return lagLeast
	}
	return uint64(min(max(float64(blocks)*lagTime.Seconds()/took.Seconds(), lagLeast), lagMost))
}

// slicesWhole reports whether the indexed ranges are one range that spans from the start to the
// cursor.
func slicesWhole(ranges []repute.BlockRange, start uint64, cursor int64) bool {
	return len(ranges) == 1 && ranges[0].From <= start && int64(ranges[0].To) >= cursor
}
