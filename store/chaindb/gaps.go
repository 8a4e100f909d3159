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
)

// Gap is a stored gap with what tells it from others of its kind.
type Gap struct {
	repute.Gap
	// Subject names the missing thing within its kind; a gap of the same chain, kind
	// and subject is the same gap.
	Subject string
}

// OpenGaps stores gaps that are known from now on. One that is open already keeps
// when it was found and when it is tried again; its blocks and reason are taken
// over. Beyond a thousand of one chain no more are kept, which is ErrGapsFull once
// the others are stored: those repaired make room for what the next comparison
// finds. repute.ErrFenced when the lease is lost.
func OpenGaps(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, gaps []Gap) error {
	dropped := 0
	err := db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("open gaps of chain %d", chainID), func(tx pgx.Tx) error {
		if err := store.HoldLease(ctx, tx, l); err != nil {
			return err
		}
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

// ErrGapsFull: more is missing of a chain than is listed.
var ErrGapsFull = errors.New("too many gaps are open")

// openGap stores one gap, unless there are too many. One that is open already takes
// over the blocks, or to widen it spans both.
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
		chainID, g.Kind, store.PlainText(g.Subject, maxSubject), maybeToken(g.Agent), maybeClient(g.Client),
		g.Blocks.From, max(g.Blocks.From, g.Blocks.To), store.PlainText(g.Reason, MaxReason), maxOpen, widen)
	return err == nil && tag.RowsAffected() > 0, err
}

// WidenGaps stores gaps beside those that other parts of the chain brought. One that
// finds no room is ErrGapsFull.
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
	maxOpen    = 1000 // gaps kept of one chain
)

func maybeToken(id *repute.TokenID) any {
	if id == nil {
		return nil
	}
	return store.TokenNum(*id)
}

func maybeClient(a *common.Address) []byte {
	if a == nil {
		return nil
	}
	return a.Bytes()
}

// PostponeGap counts a try that found nothing and plans the next one.
// repute.ErrFenced when the lease is lost.
func PostponeGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap, pause time.Duration) error {
	return changeGap(ctx, db, chainID, l, g, "update gaps set tries = tries + 1, next_try = now() + $4 where chain_id = $1 and kind = $2 and subject = $3", pause)
}

// CloseGap forgets a gap that is none any more. repute.ErrFenced when the lease is
// lost.
func CloseGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap) error {
	return changeGap(ctx, db, chainID, l, g, "delete from gaps where chain_id = $1 and kind = $2 and subject = $3")
}

func changeGap(ctx context.Context, db *store.DB, chainID uint64, l store.Lease, g Gap, sql string, args ...any) error {
	return db.InTx(ctx, pgx.TxOptions{}, fmt.Sprintf("gap of chain %d", chainID), func(tx pgx.Tx) error {
		if err := store.HoldLease(ctx, tx, l); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, sql, append([]any{chainID, g.Kind, store.PlainText(g.Subject, maxSubject)}, args...)...)
		return err
	})
}

// DueGaps are open gaps whose next try has come, the longest due first.
func DueGaps(ctx context.Context, db *store.DB, chainID uint64, limit int) ([]Gap, error) {
	rows, err := db.Readers().Query(ctx, `
		select kind, subject, token_id::text, client, from_block, to_block, reason, found_at, tries, next_try from gaps
		where chain_id = $1 and next_try <= now() order by next_try, kind, subject limit $2`, chainID, limit)
	if err != nil {
		return nil, store.Failed("due gaps", err)
	}
	gaps, err := pgx.CollectRows(rows, ScanGap)
	return gaps, store.Failed("due gaps", err)
}

// ScanGap reads a gap from the columns of selectGaps.
func ScanGap(row pgx.CollectableRow) (g Gap, err error) {
	var token *string
	var client []byte
	err = row.Scan(&g.Kind, &g.Subject, &token, &client, &g.Blocks.From, &g.Blocks.To, &g.Reason, &g.Since, &g.Tries, &g.Next)
	if err != nil {
		return g, err
	}
	g.Since, g.Next = g.Since.UTC(), g.Next.UTC()
	return g, g.name(token, client)
}

// name fills in whose the gap is.
func (g *Gap) name(token *string, client []byte) error {
	if client != nil {
		a := common.BytesToAddress(client)
		g.Client = &a
	}
	if token == nil {
		return nil
	}
	g.Agent = new(repute.TokenID)
	return g.Agent.SetFromDecimal(*token)
}

// proof is what a snapshot says of one chain's completeness by kind.
type proof struct {
	VerifiedTo map[repute.EventKind]uint64
	Pending    map[repute.EventKind]int64
	Open       map[repute.EventKind]int64 // gaps, also those not listed
	Gaps       map[repute.EventKind][]repute.Gap
	Blocks     blocksProof
}

// selectProof are the columns readProof takes, of chain c: both are arrays of a few
// rows, made in the statement that reads the chain so that an answer costs no
// statement more.
const selectProof = `
	(select jsonb_agg(jsonb_build_array(part, block)) from cursors v where v.job = 'verified' and v.chain_id = c.chain_id),
	(select jsonb_agg(jsonb_build_array(reason, n)) from (
		select reason, count(*) n from pending p where p.chain_id = c.chain_id and p.` + Waiting + ` group by reason) p),
	(select jsonb_agg(jsonb_build_object('kind', kind, 'token', token_id::text, 'client', encode(client, 'hex'), 'from', from_block,
		'to', to_block, 'reason', reason, 'since', found_at, 'tries', tries, 'next', next_try)) from (
		select * from gaps g where g.chain_id = c.chain_id order by found_at, kind, subject limit 50) g),
	(select jsonb_agg(jsonb_build_array(kind, n)) from (
		select kind, count(*) n from gaps g where g.chain_id = c.chain_id group by kind) g),
	(select jsonb_build_object(
		'ranges', (select jsonb_agg(jsonb_build_object('from', from_block, 'to', to_block, 'reason', reason, 'first', lower(unproven), 'last', upper(unproven) - 1,
			'unproven', (select coalesce(sum(upper(u) - lower(u)), 0) from unnest(unproven) u)) order by from_block)
			from block_proofs b where b.chain_id = c.chain_id),
		'asked', (select count(*) from cursors q where q.job = 'requested block' and q.chain_id = c.chain_id)))`

type gapJSON struct {
	Kind        repute.EventKind
	Token       *string
	Client      *string
	From, To    uint64
	Reason      string
	Since, Next time.Time
	Tries       int
}

func readProof(verified, pending, gaps, counts, blocks []byte) (proof, error) {
	p := proof{VerifiedTo: map[repute.EventKind]uint64{},
		Pending: map[repute.EventKind]int64{}, Open: map[repute.EventKind]int64{}, Gaps: map[repute.EventKind][]repute.Gap{}}
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

func (p proof) listGaps(raw []byte) error {
	var listed []gapJSON
	if err := unmarshal(raw, &listed); err != nil {
		return err
	}
	for _, g := range listed {
		gap, err := g.gap()
		if err != nil {
			return err
		}
		p.Gaps[g.Kind] = append(p.Gaps[g.Kind], gap)
	}
	return nil
}

func unmarshal(raw []byte, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (j gapJSON) gap() (repute.Gap, error) {
	g := Gap{Gap: repute.Gap{Kind: j.Kind, Blocks: repute.BlockRange{From: j.From, To: j.To}, Reason: j.Reason,
		Since: j.Since.UTC(), Tries: j.Tries, Next: j.Next.UTC()}}
	var client []byte
	if j.Client != nil {
		client = common.FromHex(*j.Client)
	}
	err := g.name(j.Token, client)
	return g.Gap, err
}

// MissingKind is what an event waits for.
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
