package chaindb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Gap is a stored gap with its key among the gaps of its kind.
type Gap struct {
	repute.Gap
	// Subject names the missing thing within its kind; a gap of the same chain, kind
	// and subject is the same gap.
	Subject string
}

// OpenGaps stores gaps. A gap that is stored already keeps when it was found and when it is
// retried; its blocks and reason are replaced. A chain has at most a thousand gaps: for more,
// OpenGaps stores what fits and returns ErrGapsFull, and the next comparison stores others as these
// are repaired. repute.ErrFenced when the lease is lost.
func OpenGaps(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, gaps []Gap) error {
	dropped := 0
	err := db.InLease(ctx, l, fmt.Sprintf("open gaps of chain %d", chainID), func(tx pgx.Tx) error {
		dropped = 0
		for _, g := range gaps {
			kept, err := openGap(ctx, tx, chainID, g, false)
			if err != nil {
				return err
			}
			if !kept {
				dropped++
			}
		}
		return nil
	})
	if err == nil && dropped > 0 {
		err = fmt.Errorf("%d of %d gaps of chain %d: %w", dropped, len(gaps), chainID, ErrGapsFull)
	}
	return err
}

// ErrGapsFull is returned when a chain has more gaps than are stored.
var ErrGapsFull = errors.New("too many gaps are open")

// openGap stores one gap unless there are too many, and reports whether it is stored. A gap that
// exists gets the new blocks, or with widen the range that spans both.
func openGap(ctx context.Context, tx pgx.Tx, chainID uint64, g Gap, widen bool) (kept bool, err error) {
	tag, err := tx.Exec(ctx, `
		insert into gaps as g (chain_id, kind, subject, token_id, client, from_block, to_block, reason)
		select $1, $2, $3, $4::numeric, $5::bytea, $6, $7, $8
		where (select count(*) from gaps where chain_id = $1) < $9 or exists (
			select from gaps where chain_id = $1 and kind = $2 and subject = $3)
		on conflict (chain_id, kind, subject) do update
		set from_block = case when $10 then least(g.from_block, excluded.from_block) else excluded.from_block end,
			to_block = case when $10 then greatest(g.to_block, excluded.to_block) else excluded.to_block end,
			reason = excluded.reason`,
		chainID, g.Kind, column.PlainText(g.Subject, maxSubject), (*column.TokenNum)(g.Agent), maybeClient(g.Client),
		g.Blocks.From, max(g.Blocks.From, g.Blocks.To), column.PlainText(g.Reason, MaxReason), maxOpen, widen)
	return err == nil && tag.RowsAffected() > 0, err
}

// WidenGaps stores gaps in addition to those known of other blocks: the range of a gap that exists
// is widened. It returns ErrGapsFull when one does not fit.
func WidenGaps(ctx context.Context, tx pgx.Tx, chainID uint64, gaps []Gap) error {
	for _, g := range gaps {
		kept, err := openGap(ctx, tx, chainID, g, true)
		if err == nil && !kept {
			err = ErrGapsFull
		}
		if err != nil {
			return store.Failed("open gap", err)
		}
	}
	return nil
}

// Bounds of gaps.
const (
	maxSubject = 300
	MaxReason  = 500
	// maxOpen is how many gaps of one chain are stored.
	maxOpen = 1000
)

// maybeClient returns an address as a parameter, null for nil.
func maybeClient(a *common.Address) []byte {
	if a == nil {
		return nil
	}
	return a.Bytes()
}

// PostponeGap counts a failed attempt to find the missing event and schedules the next one.
// repute.ErrFenced when the lease is lost.
func PostponeGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap, pause time.Duration) error {
	return changeGap(ctx, db, chainID, l, g,
		"update gaps set tries = tries + 1, next_try = now() + $4 where chain_id = $1 and kind = $2 and subject = $3",
		pause)
}

// CloseGap deletes a gap whose event was found. repute.ErrFenced when the lease is lost.
func CloseGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap) error {
	return changeGap(ctx, db, chainID, l, g, "delete from gaps where chain_id = $1 and kind = $2 and subject = $3")
}

// changeGap executes a statement about one gap, whose parameters $1 to $3 are its key, under the
// lease.
func changeGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap, sql string, args ...any) error {
	return db.InLease(ctx, l, fmt.Sprintf("gap of chain %d", chainID), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql, append([]any{chainID, g.Kind, column.PlainText(g.Subject, maxSubject)}, args...)...)
		return err
	})
}

// DueGaps returns gaps whose next attempt is due, the longest due first.
func DueGaps(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]Gap, error) {
	rows, _ := db.Readers().Query(ctx, `
		select kind, subject, token_id, client, from_block, to_block, reason, found_at, tries, next_try from gaps
		where chain_id = $1 and next_try <= now() order by next_try, kind, subject limit $2`, chainID, limit)
	gaps, err := pgx.CollectRows(rows, ScanGap)
	return gaps, store.Failed("due gaps", err)
}

// ScanGap reads a gap from the columns of DueGaps.
func ScanGap(row pgx.CollectableRow) (g Gap, err error) {
	var token *column.TokenNum
	var client *column.Address
	err = row.Scan(&g.Kind, &g.Subject, &token, &client, &g.Blocks.From, &g.Blocks.To, &g.Reason,
		(*column.Time)(&g.Since), &g.Tries, (*column.Time)(&g.Next))
	g.Agent, g.Client = (*repute.TokenID)(token), (*common.Address)(client)
	return g, err
}

// proof is the completeness of one chain per kind of event, as a snapshot shows it.
type proof struct {
	VerifiedTo map[repute.EventKind]uint64
	Pending    map[repute.EventKind]int64
	Open       map[repute.EventKind]int64 // gaps, also those not listed
	Gaps       map[repute.EventKind][]repute.Gap
	Blocks     blocksProof
}

// ofRegistries is the SQL condition of gaps that concern agents. What is missing of a treasury shows in the status of
// the treasury.
const ofRegistries = `kind <> ` + treasuryKind

// treasuryKind is repute.KindTreasuryEvent in SQL.
const treasuryKind = "20"

// The program does not compile unless treasuryKind is the kind's number.
const _ = uint(repute.KindTreasuryEvent-20) + uint(20-repute.KindTreasuryEvent)

// selectProof are the columns of chain c that readProof decodes, each a JSON array of a few rows.
// They are part of the statement that reads the chain, so that an answer needs no further
// statement.
const selectProof = `
	(select jsonb_agg(jsonb_build_array(part, block)) from cursors v where v.job = 'verified' and v.chain_id = c.chain_id),
	(select jsonb_agg(jsonb_build_array(reason, n)) from (
		select reason, count(*) n from pending p where p.chain_id = c.chain_id and p.` + Waiting + ` group by reason) p),
	(select jsonb_agg(jsonb_build_object('kind', kind, 'token', token_id::text, 'client', '0x' || encode(client, 'hex'),
		'from', from_block,
		'to', to_block, 'reason', reason, 'since', found_at, 'tries', tries, 'next', next_try)) from (
		select * from gaps g where g.chain_id = c.chain_id and g.` + ofRegistries + ` order by found_at, kind, subject limit 50) g),
	(select jsonb_agg(jsonb_build_array(kind, n)) from (
		select kind, count(*) n from gaps g where g.chain_id = c.chain_id and g.` + ofRegistries + ` group by kind) g),
	(select jsonb_build_object(
		'ranges', (select jsonb_agg(jsonb_build_object('from', from_block, 'to', to_block, 'reason', reason, 'first',
			lower(unproven), 'last', upper(unproven) - 1,
			'unproven', (select coalesce(sum(upper(u) - lower(u)), 0) from unnest(unproven) u)) order by from_block)
			from block_proofs b where b.chain_id = c.chain_id),
		'asked', (select count(*) from cursors q where q.job = 'requested block' and q.chain_id = c.chain_id)))`

// gapJSON is a gap in the JSON that selectProof makes.
type gapJSON struct {
	Kind        repute.EventKind
	Token       *repute.TokenID
	Client      *common.Address
	From, To    uint64
	Reason      string
	Since, Next time.Time
	Tries       int
}

// readProof decodes the columns of selectProof.
func readProof(verified, pending, gaps, counts, blocks []byte) (proof, error) {
	p := proof{VerifiedTo: map[repute.EventKind]uint64{},
		Pending: map[repute.EventKind]int64{}, Open: map[repute.EventKind]int64{},
		Gaps: map[repute.EventKind][]repute.Gap{}}
	if err := unmarshal(blocks, &p.Blocks); err != nil {
		return p, err
	}
	var rows [][2]uint64
	if err := unmarshal(verified, &rows); err != nil {
		return p, err
	}
	for _, r := range rows {
		p.VerifiedTo[repute.EventKind(r[0])] = r[1]
	}
	var waits [][2]any
	if err := unmarshal(pending, &waits); err != nil {
		return p, err
	}
	for _, w := range waits {
		reason, _ := w[0].(string)
		n, _ := w[1].(float64)
		p.Pending[MissingKind(reason)] += int64(n)
	}
	var open [][2]int64
	if err := unmarshal(counts, &open); err != nil {
		return p, err
	}
	for _, n := range open {
		p.Open[repute.EventKind(n[0])] = n[1]
	}
	return p, p.listGaps(gaps)
}

// listGaps adds the listed gaps, by kind.
func (p proof) listGaps(raw []byte) error {
	var listed []gapJSON
	if err := unmarshal(raw, &listed); err != nil {
		return err
	}
	for _, g := range listed {
		p.Gaps[g.Kind] = append(p.Gaps[g.Kind], repute.Gap{Kind: g.Kind, Agent: g.Token, Client: g.Client,
			Blocks: repute.BlockRange{From: g.From, To: g.To}, Reason: g.Reason, Since: g.Since.UTC(), Tries: g.Tries,
			Next: g.Next.UTC()})
	}
	return nil
}

// unmarshal decodes JSON; null leaves the value as it is.
func unmarshal(raw []byte, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// MissingKind returns the kind of event that a pending event waits for, by its reason.
func MissingKind(reason string) repute.EventKind {
	switch reason {
	case WaitsForIndex, WaitsForFeedback:
		return repute.KindNewFeedback
	case WaitsForRequest:
		return repute.KindValidationRequest
	case WaitsForAgent:
		return repute.KindTransfer // the mint
	}
	return repute.KindUndecoded // its own
}
