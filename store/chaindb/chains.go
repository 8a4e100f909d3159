package chaindb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// headStale is the age after which the stored head says nothing about the lag.
const headStale = time.Minute

// readTimeout bounds one View with all its statements.
const readTimeout = 15 * time.Second

// View runs f in a read-only transaction on one snapshot, so that all its statements see the same
// state. Where the caller demands a block (WithMinBlock) it waits for it.
func View(ctx context.Context, db *store.DB, doing string, f func(context.Context, pgx.Tx) error) error {
	demand := demandOf(ctx)
	for end := time.Now().Add(minBlockWait); ; {
		err := viewOnce(ctx, db, doing, func(ctx context.Context, tx pgx.Tx) error {
			if err := demand.check(ctx, tx); err != nil {
				return err
			}
			return f(ctx, tx)
		})
		var behind *behindError
		if !errors.As(err, &behind) || ctx.Err() != nil {
			return err
		}
		if time.Now().After(end) {
			return behind.busy()
		}
		repute.Pause(ctx, minBlockPoll)
	}
}

// viewOnce is View without a demand.
func viewOnce(ctx context.Context, db *store.DB, doing string, f func(context.Context, pgx.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := db.InSnapshot(limited, doing, func(tx pgx.Tx) error { return f(limited, tx) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %s (%w)", repute.ErrUnavailable, readTimeout, err)
	}
	return err
}

// ChainView is one chain as a snapshot shows it. Block numbers are signed, because the cursor of a
// chain that starts at block 0 is -1 at first.
type ChainView struct {
	repute.Chain
	Cursor          int64
	cursorHash      common.Hash
	cursorTime      time.Time
	head            int64
	headSeen        time.Time
	safe, Finalized int64
	Reorgs          int64
	Halted          bool
	LastError       string
	Ranges          []repute.BlockRange
	// Pending and Undecoded count events that wait for a missing one and events that cannot be
	// read.
	Pending   int64
	Undecoded int64
	proof     proof
	// oldest is the oldest stored header with a time, 0 for none.
	oldest     int64
	oldestTime time.Time
	now        time.Time // the database's clock
}

// Waiting is the SQL condition of pending events that wait for a missing one or cannot be read,
// which makes a chain incomplete. Others contradict what is stored and are no gap. It MUST equal
// the condition of index pending_waiting.
const Waiting = `reason in ('` + WaitsForAgent + `', '` + WaitsForIndex + `', '` + WaitsForFeedback + `', '` +
	WaitsForRequest +
	`', '` + string(repute.LegacyEvent) + `', '` + string(repute.MalformedEvent) + `')`

// HasRegistries is the SQL condition of chains that are indexed for their registries, as all but those that are
// indexed for treasuries alone.
const HasRegistries = `identity <> ''`

// Undecoded is the SQL condition of pending events that this version of the program cannot read.
const Undecoded = `reason in ('` + string(repute.LegacyEvent) + `', '` + string(repute.MalformedEvent) + `')`

// selectChains is the SQL of the chains with the ids $1, all for null, as scanChain reads them.
const selectChains = `
	select c.chain_id, c.name, c.identity, c.reputation, c.validations, c.gateways, c.gateways_from, c.treasuries, c.treasuries_from,
		c.start_block, c.imported,
		c.cursor_block, c.cursor_hash, c.cursor_time, c.head_block, c.head_seen_at, c.safe_block,
		c.finalized_block, c.reorgs, c.halted, c.last_error,
		array(select lower(r) from unnest(c.covered) r order by r), array(select upper(r) - 1 from unnest(c.covered) r
			order by r),
		w.pending, w.undecoded, now(), coalesce(o.number, 0), o.time, ` + selectProof + `
	from chains c
	cross join lateral (select count(*) filter (where not ` + Undecoded + `) pending, count(*) filter (where ` + Undecoded + `) undecoded
		from pending p where p.chain_id = c.chain_id and p.` + Waiting + `) w
	left join lateral (select number, time from blocks b where b.chain_id = c.chain_id order by number limit 1) o on true
	where ($1::bigint[] is null or c.chain_id = any($1)) and c.` + HasRegistries + `
	order by c.chain_id`

// ReadChains reads the chains with the given ids, or all for nil, ordered by id. Chains without registries are not
// among them: nothing is known of their agents.
func ReadChains(ctx context.Context, tx pgx.Tx, ids []uint64) ([]*ChainView, error) {
	rows, _ := tx.Query(ctx, selectChains, ids)
	return pgx.CollectRows(rows, scanChain)
}

// AskedChains returns the chains that a request names, all for nil. For a missing one it returns repute.ErrNotFound,
// because an empty list would look like a chain without agents.
func AskedChains(ctx context.Context, tx pgx.Tx, ids []uint64) ([]*ChainView, error) {
	chains, err := ReadChains(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(chains, func(c *ChainView) bool { return c.ID == id }) {
			return nil, missingChain(id)
		}
	}
	return chains, nil
}

// ChainIDs returns the ids of chains.
func ChainIDs(chains []*ChainView) []uint64 {
	ids := make([]uint64, len(chains))
	for i, c := range chains {
		ids[i] = c.ID
	}
	return ids
}

// LatestOf returns the newest indexed block of each chain, with its freshness.
func LatestOf(chains []*ChainView) []repute.AsOf {
	out := make([]repute.AsOf, len(chains))
	for i, c := range chains {
		out[i] = c.Latest()
	}
	return out
}

// scanChain reads a row of ReadChains.
func scanChain(row pgx.CollectableRow) (*ChainView, error) {
	var c ChainView
	var validations, gateways, treasuries [][]byte
	var from, to, gatewaysFrom, treasuriesFrom []int64
	var verified, waits, gaps, open, blocks []byte
	err := row.Scan(&c.ID, &c.Name, (*column.Address)(&c.Identity), (*column.Address)(&c.Reputation), &validations,
		&gateways, &gatewaysFrom, &treasuries, &treasuriesFrom, &c.StartBlock, &c.Imported,
		&c.Cursor, (*column.Hash)(&c.cursorHash), (*column.Time)(&c.cursorTime), &c.head, (*column.Time)(&c.headSeen),
		&c.safe, &c.Finalized, &c.Reorgs, &c.Halted, &c.LastError, &from, &to, &c.Pending, &c.Undecoded, &c.now,
		&c.oldest, (*column.Time)(&c.oldestTime), &verified, &waits, &gaps, &open, &blocks)
	if err != nil {
		return nil, err
	}
	c.proof, err = readProof(verified, waits, gaps, open, blocks)
	for _, v := range validations {
		c.Validations = append(c.Validations, common.BytesToAddress(v))
	}
	c.Gateways, c.Treasuries = scanWatched(gateways, gatewaysFrom), scanWatched(treasuries, treasuriesFrom)
	for i := range from {
		c.Ranges = append(c.Ranges, repute.BlockRange{From: uint64(from[i]), To: uint64(to[i])})
	}
	return &c, err
}

// Latest returns the newest indexed block with its freshness.
func (c *ChainView) Latest() repute.AsOf {
	cursor := repute.Block{Number: uint64(max(c.Cursor, 0)), Hash: c.cursorHash, Time: c.cursorTime}
	return c.asOf(cursor, repute.Latest, c.cursorTime)
}

// asOf fills in the freshness of an answer at a block. age is the block's time or, where its header
// is not stored, the time of the newest stored block below it, whose state is the same. LagSeconds
// is nil when no time is known.
func (c *ChainView) asOf(b repute.Block, f repute.Finality, age time.Time) repute.AsOf {
	a := repute.AsOf{
		ChainID: c.ID, Block: b, Finality: f, Safe: uint64(c.safe), Finalized: uint64(c.Finalized),
		Head: uint64(c.head), HeadSeenAt: c.headSeen, Completeness: c.completeness(),
	}
	if !age.IsZero() {
		lag := max(0, int64(c.now.Sub(age)/time.Second))
		a.LagSeconds = &lag
	}
	if !c.headSeen.IsZero() && c.now.Sub(c.headSeen) <= headStale {
		lag := max(0, c.head-int64(b.Number))
		a.LagBlocks = &lag
	}
	return a
}

// Everything is a block number above every stored one. The histories at it are the current state.
const Everything = math.MaxInt64

// at returns the block that a request is about; Everything for the latest one.
func (c *ChainView) at(ctx context.Context, tx pgx.Tx, at repute.At) (int64, repute.AsOf, error) {
	if at.Finality == repute.Latest {
		return Everything, c.Latest(), nil
	}
	if c.Imported {
		return 0, repute.AsOf{}, repute.Invalid("at", "an imported chain has only its newest state", "use latest")
	}
	n, finality, err := c.blockOf(at)
	if err != nil {
		return 0, repute.AsOf{}, err
	}
	b, age, err := ReadHeader(ctx, tx, c.ID, n)
	return n, c.asOf(b, finality, age), err
}

// blockOf returns the number of the block that a request is about, and an error when it is not
// indexed.
func (c *ChainView) blockOf(at repute.At) (int64, repute.Finality, error) {
	var n int64
	finality := at.Finality
	switch finality {
	case repute.Safe:
		n = min(c.safe, c.Cursor)
	case repute.Finalized:
		n = min(c.Finalized, c.Cursor)
	case "":
		n = int64(min(at.Block, math.MaxInt64-1))
		finality = c.finalityOf(n)
	default:
		return 0, "", repute.Invalid("at", fmt.Sprintf("%q is no view of a chain", finality),
			"latest, safe, finalized or a block number")
	}
	switch {
	case at.Finality != "" && n <= 0:
		return 0, "", repute.Invalid("at", fmt.Sprintf("no %s block is known of chain %d yet", finality, c.ID),
			"use latest or a block number")
	case n > c.Cursor:
		return 0, "", repute.Invalid("at", fmt.Sprintf("block %d of chain %d is not indexed yet", n, c.ID),
			fmt.Sprintf("the newest indexed block is %d", c.Cursor))
	case n < int64(c.StartBlock):
		return 0, "", repute.Invalid("at", fmt.Sprintf("block %d of chain %d is before the index begins", n, c.ID),
			fmt.Sprintf("the first block is %d", c.StartBlock))
	}
	return n, finality, nil
}

// finalityOf returns the strongest finality that block n has.
func (c *ChainView) finalityOf(n int64) repute.Finality {
	switch {
	case n <= c.Finalized:
		return repute.Finalized
	case n <= c.safe:
		return repute.Safe
	}
	return repute.Latest
}

// ReadHeader returns block n as far as it is stored, and the time of the newest stored block at or
// below it.
func ReadHeader(ctx context.Context, tx pgx.Tx, chain uint64, n int64) (repute.Block, time.Time, error) {
	b := repute.Block{Number: uint64(n)}
	stored, err := ScanBlock(tx.QueryRow(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 and number <= $2
		order by number desc limit 1`, chain, n))
	if errors.Is(err, repute.ErrNotFound) {
		return b, time.Time{}, nil
	}
	if stored.Number == b.Number {
		b = stored
	}
	return b, stored.Time, err
}

// Stalled is the prefix of last_error while the head of a chain advances and nothing is stored.
const Stalled = "stalled: "

// UpgradedBefore reports whether the contract of an Upgraded log was upgraded in an earlier block.
// The first one is a proxy's deployment and no change.
func UpgradedBefore(ctx context.Context, db *store.DB, chainID uint64, l *types.Log) (before bool, err error) {
	// The kind is written out: it is the condition of index events_upgrades.
	err = db.Readers().QueryRow(ctx,
		`select exists (select from events where chain_id = $1 and kind = 14 and block < $2 and address = $3)`,
		chainID, l.BlockNumber, l.Address[:]).Scan(&before)
	return before, store.Failed("earlier upgrades", err)
}

// upgrades counts the Upgraded events of one chain's registries, without the first of each, which
// belongs to its deployment.
type upgrades struct {
	N    int64
	Last uint64 // block of the newest one
}

// ReadUpgrades returns per chain how often its registries were upgraded, and when last.
func ReadUpgrades(ctx context.Context, tx pgx.Tx) (map[uint64]upgrades, error) {
	// The kind is written out: it is the condition of index events_upgrades.
	rows, _ := tx.Query(ctx,
		fmt.Sprintf("select chain_id, count(*) - count(distinct address), max(block) from events where kind = %d group by chain_id", repute.KindUpgraded))
	out := map[uint64]upgrades{}
	var chain uint64
	var u upgrades
	_, err := pgx.ForEachRow(rows, []any{&chain, &u.N, &u.Last}, func() error {
		if u.N > 0 {
			out[chain] = u
		}
		return nil
	})
	return out, err
}

// ResolveAgent completes an agent reference of a caller: the chain from defaultChain (0 for none)
// or because only one is indexed, the registry from the chain. It does not check that the agent
// exists. repute.ErrNotFound when there is no such chain or the registry is another one;
// repute.ErrInvalid when the chain is ambiguous.
func ResolveAgent(ctx context.Context, db *store.DB, ref repute.AgentRef, defaultChain uint64) (id repute.AgentID,
	err error) {
	var ids []uint64
	wanted := cmp.Or(ref.ChainID, defaultChain)
	if wanted != 0 {
		ids = []uint64{wanted}
	}
	known := store.Kept(db, func() *registries { return &registries{} })
	if v, found := known.Load(wanted); found {
		registry := v.(common.Address)
		if ref.Registry == nil || *ref.Registry == registry {
			return repute.AgentID{ChainID: wanted, Registry: registry, TokenID: ref.TokenID}, nil
		}
	}
	err = View(ctx, db, "resolve agent", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := ReadChains(ctx, tx, ids)
		if err != nil {
			return err
		}
		if id, err = IdentifyAgent(chains, ref, defaultChain); err == nil {
			known.Store(id.ChainID, id.Registry)
		}
		return err
	})
	return id, err
}

// registries has the identity registries of chains that were looked up, as common.Address by the chain's uint64. A
// chain keeps its registry for ever (AddChain).
type registries struct{ sync.Map }

// IdentifyAgent is ResolveAgent for chains that were read already: all of them, or at least the one that the reference
// or defaultChain names.
func IdentifyAgent(chains []*ChainView, ref repute.AgentRef, defaultChain uint64) (id repute.AgentID, err error) {
	wanted := cmp.Or(ref.ChainID, defaultChain)
	if wanted != 0 {
		chains = slices.DeleteFunc(slices.Clone(chains), func(c *ChainView) bool { return c.ID != wanted })
	}
	switch {
	case len(chains) > 1:
		return id, repute.Invalid("id", "names no chain, and several are indexed", repute.AgentIDForms)
	case len(chains) == 0 && wanted == 0:
		return id, &repute.MissingError{What: "a chain", Why: "is not indexed yet", Hint: "serve or import one first"}
	case len(chains) == 0:
		return id, repute.Missing("chain %d", wanted)
	}
	c := chains[0]
	if ref.Registry != nil && *ref.Registry != c.Identity {
		return id, repute.Missing("registry %s of chain %d", ref.Registry.Hex(), c.ID)
	}
	return repute.AgentID{ChainID: c.ID, Registry: c.Identity, TokenID: ref.TokenID}, nil
}

// Subject is one agent that exists at the requested block, on one snapshot.
type Subject struct {
	Tx    pgx.Tx
	Chain *ChainView
	ID    repute.AgentID // registry filled in
	Block int64          // Everything for latest
	AsOf  repute.AsOf
}

// ViewAgent runs f for an agent as of a block, on one snapshot. repute.ErrNotFound when the chain,
// the registry or the agent does not exist then.
func ViewAgent(ctx context.Context, db *store.DB, doing string, id repute.AgentID, at repute.At,
	f func(context.Context, Subject) error) error {
	return View(ctx, db, doing, func(ctx context.Context, tx pgx.Tx) error { return ForAgent(ctx, tx, id, at, f) })
}

// ForAgent is ViewAgent within the transaction of a snapshot.
func ForAgent(ctx context.Context, tx pgx.Tx, id repute.AgentID, at repute.At, f func(context.Context,
	Subject) error) error {
	chain, since, err := readSubject(ctx, tx, id)
	if err != nil {
		return err
	}
	if chain == nil || id.Registry != (common.Address{}) && id.Registry != chain.Identity {
		return repute.Missing("the registry of agent %s", id)
	}
	s := Subject{Tx: tx, Chain: chain, ID: id}
	s.ID.Registry = s.Chain.Identity
	if s.Block, s.AsOf, err = s.Chain.at(ctx, tx, at); err != nil {
		return err
	}
	if since == nil || *since > s.Block {
		return s.missing(since)
	}
	return f(ctx, s)
}

// readSubject reads the chain of an agent, nil for none, and the block since which the agent exists, nil for never,
// with one message to the database: every answer about an agent begins with it.
func readSubject(ctx context.Context, tx pgx.Tx, id repute.AgentID) (chain *ChainView, since *int64, err error) {
	var b pgx.Batch
	b.Queue("set local plan_cache_mode = force_generic_plan") // planning the two takes longer than reading them
	b.Queue(selectChains, []uint64{id.ChainID}).Query(func(rows pgx.Rows) error {
		chains, err := pgx.CollectRows(rows, scanChain)
		if len(chains) > 0 {
			chain = chains[0]
		}
		return err
	})
	b.Queue("select max(registered_block) from agents where chain_id = $1 and token_id = $2", id.ChainID,
		column.TokenNum(id.TokenID)).QueryRow(func(row pgx.Row) error { return row.Scan(&since) })
	b.Queue("set local plan_cache_mode = auto")
	err = tx.SendBatch(ctx, &b).Close()
	return chain, since, err
}

// missingChain returns the error for a chain that is not indexed.
func missingChain(id uint64) error {
	return &repute.MissingError{What: fmt.Sprintf("chain %d", id), Hint: "/chains lists those that are"}
}

// missing returns the error for an agent that does not exist at the block; its text says whether it exists later, since
// a block.
func (s Subject) missing(since *int64) error {
	if since == nil {
		return repute.Missing("agent %s", s.ID.Short())
	}
	return &repute.MissingError{What: "agent " + s.ID.Short(), Why: fmt.Sprintf("did not exist at block %d", s.Block),
		Hint: fmt.Sprintf("it was registered at block %d", *since)}
}

// Key returns the parameters $1 to $3 of statements about one agent at one block: chain, token and
// block.
func (s Subject) Key() []any {
	return []any{s.ID.ChainID, column.TokenNum(s.ID.TokenID), s.Block}
}
