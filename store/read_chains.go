package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute"
)

// headStale is when a head as last seen says nothing about the lag any more.
const headStale = time.Minute

// readTimeout bounds one read with all its statements.
const readTimeout = 15 * time.Second

// view runs f on one snapshot: everything it reads is true at the same moment.
func (db *DB) view(ctx context.Context, doing string, f func(context.Context, pgx.Tx) error) error {
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := db.inTx(limited, options, doing, func(tx pgx.Tx) error { return f(limited, tx) })
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: no answer within %s (%w)", repute.ErrUnavailable, readTimeout, err)
	}
	return err
}

// chainView is one chain as a snapshot shows it. Block numbers are signed: the
// cursor of a chain that starts at 0 is -1 at first.
type chainView struct {
	repute.Chain
	cursor          int64
	cursorHash      common.Hash
	cursorTime      time.Time
	head            int64
	headSeen        time.Time
	safe, finalized int64
	reorgs          int64
	halted          bool
	lastError       string
	ranges          []repute.BlockRange
	pending         int64 // wait for a missing event
	undecoded       int64
	proof           proof
	oldest          int64 // the oldest header that is kept, 0 for none with a time
	oldestTime      time.Time
	now             time.Time // the database's clock
}

// waiting tells events that wait for a missing one from those that contradict
// what is stored and are no gap. It is the condition of index pending_waiting.
const waiting = `reason in ('` + waitsForAgent + `', '` + waitsForIndex + `', '` + waitsForFeedback + `', '` + waitsForRequest +
	`', '` + string(repute.LegacyEvent) + `', '` + string(repute.MalformedEvent) + `')`

// undecoded tells those of them that wait for another version of the program.
const undecoded = `reason in ('` + string(repute.LegacyEvent) + `', '` + string(repute.MalformedEvent) + `')`

// readChains loads the chains named, or all for nil, by id.
func readChains(ctx context.Context, tx pgx.Tx, ids []uint64) ([]*chainView, error) {
	rows, err := tx.Query(ctx, `
		select c.chain_id, c.name, c.identity, c.reputation, c.validations, c.start_block, c.imported,
			c.cursor_block, c.cursor_hash, c.cursor_time, c.head_block, c.head_seen_at, c.safe_block,
			c.finalized_block, c.reorgs, c.halted, c.last_error,
			array(select from_block from covered v where v.chain_id = c.chain_id order by from_block),
			array(select to_block from covered v where v.chain_id = c.chain_id order by from_block),
			w.pending, w.undecoded, now(), coalesce(o.number, 0), o.time, `+selectProof+`
		from chains c
		cross join lateral (select count(*) filter (where not `+undecoded+`) pending, count(*) filter (where `+undecoded+`) undecoded
			from pending p where p.chain_id = c.chain_id and p.`+waiting+`) w
		left join lateral (select number, time from blocks b where b.chain_id = c.chain_id order by number limit 1) o on true
		where $1::bigint[] is null or c.chain_id = any($1)
		order by c.chain_id`, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanChain)
}

func scanChain(row pgx.CollectableRow) (*chainView, error) {
	var c chainView
	var identity, reputation, hash []byte
	var validations [][]byte
	var cursorTime, headSeen, oldest *time.Time
	var from, to []int64
	var verified, waits, gaps, open, blocks []byte
	err := row.Scan(&c.ID, &c.Name, &identity, &reputation, &validations, &c.StartBlock, &c.Imported,
		&c.cursor, &hash, &cursorTime, &c.head, &headSeen, &c.safe,
		&c.finalized, &c.reorgs, &c.halted, &c.lastError, &from, &to, &c.pending, &c.undecoded, &c.now,
		&c.oldest, &oldest, &verified, &waits, &gaps, &open, &blocks)
	if err != nil {
		return nil, err
	}
	c.proof, err = readProof(verified, waits, gaps, open, blocks)
	c.Identity, c.Reputation = common.BytesToAddress(identity), common.BytesToAddress(reputation)
	for _, v := range validations {
		c.Validations = append(c.Validations, common.BytesToAddress(v))
	}
	c.cursorHash = common.BytesToHash(hash)
	c.cursorTime, c.headSeen, c.oldestTime = timeOf(cursorTime), timeOf(headSeen), timeOf(oldest)
	for i := range from {
		c.ranges = append(c.ranges, repute.BlockRange{From: uint64(from[i]), To: uint64(to[i])})
	}
	return &c, err
}

// timeOf maps null to the zero time.
func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// latest is the view of the newest indexed block.
func (c *chainView) latest() repute.AsOf {
	cursor := repute.Block{Number: uint64(max(c.cursor, 0)), Hash: c.cursorHash, Time: c.cursorTime}
	return c.asOf(cursor, repute.Latest, c.cursorTime)
}

// asOf completes an answer's freshness. Age is the time the lag is counted
// from: the block's, or where its header is not kept that of the newest kept
// block below it, whose state is the same. LagSeconds is nil when no time at all
// is known.
func (c *chainView) asOf(b repute.Block, f repute.Finality, age time.Time) repute.AsOf {
	a := repute.AsOf{
		ChainID: c.ID, Block: b, Finality: f, Safe: uint64(c.safe), Finalized: uint64(c.finalized),
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

// everything is a block above every stored one: histories at it are the current
// state.
const everything = math.MaxInt64

// at finds the block a question is asked of. For latest it is `everything`.
func (c *chainView) at(ctx context.Context, tx pgx.Tx, at repute.At) (int64, repute.AsOf, error) {
	if at.Finality == repute.Latest {
		return everything, c.latest(), nil
	}
	if c.Imported {
		return 0, repute.AsOf{}, repute.Invalid("at", "an imported chain has only its newest state", "use latest")
	}
	n, finality, err := c.blockOf(at)
	if err != nil {
		return 0, repute.AsOf{}, err
	}
	b, age, err := readHeader(ctx, tx, c.ID, n)
	return n, c.asOf(b, finality, age), err
}

// blockOf checks a view against what is indexed.
func (c *chainView) blockOf(at repute.At) (int64, repute.Finality, error) {
	var n int64
	finality := at.Finality
	switch finality {
	case repute.Safe:
		n = min(c.safe, c.cursor)
	case repute.Finalized:
		n = min(c.finalized, c.cursor)
	case "":
		n = int64(min(at.Block, math.MaxInt64-1))
		finality = c.finalityOf(n)
	default:
		return 0, "", repute.Invalid("at", fmt.Sprintf("%q is no view of a chain", finality), "latest, safe, finalized or a block number")
	}
	switch {
	case at.Finality != "" && n <= 0:
		return 0, "", repute.Invalid("at", fmt.Sprintf("no %s block is known of chain %d yet", finality, c.ID), "use latest or a block number")
	case n > c.cursor:
		return 0, "", repute.Invalid("at", fmt.Sprintf("block %d of chain %d is not indexed yet", n, c.ID), fmt.Sprintf("the newest indexed block is %d", c.cursor))
	case n < int64(c.StartBlock):
		return 0, "", repute.Invalid("at", fmt.Sprintf("block %d of chain %d is before the index begins", n, c.ID), fmt.Sprintf("the first block is %d", c.StartBlock))
	}
	return n, finality, nil
}

// finalityOf is the strongest view that holds the block.
func (c *chainView) finalityOf(n int64) repute.Finality {
	switch {
	case n <= c.finalized:
		return repute.Finalized
	case n <= c.safe:
		return repute.Safe
	}
	return repute.Latest
}

// readHeader gives block n as far as it is known, and the time of the newest
// kept block at or below it.
func readHeader(ctx context.Context, tx pgx.Tx, chain uint64, n int64) (repute.Block, time.Time, error) {
	b := repute.Block{Number: uint64(n)}
	var number int64
	var hash, parent []byte
	var at *time.Time
	err := tx.QueryRow(ctx, `
		select number, hash, parent, time from blocks where chain_id = $1 and number <= $2
		order by number desc limit 1`, chain, n).Scan(&number, &hash, &parent, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, time.Time{}, nil
	}
	if err == nil && number == n {
		b.Hash, b.Parent, b.Time = common.BytesToHash(hash), common.BytesToHash(parent), timeOf(at)
	}
	return b, timeOf(at), err
}

// Chains lists every chain by id with what operators watch. In a large index
// the totals may be a few seconds older than the rest: see totals.
func (db *DB) Chains(ctx context.Context) (out []repute.ChainStatus, err error) {
	err = db.view(ctx, "read chains", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := readChains(ctx, tx, nil)
		if err != nil {
			return err
		}
		counted, err := Kept(db, func() *totals { return &totals{} }).get(ctx, tx)
		if err != nil {
			return err
		}
		upgrades, err := readUpgrades(ctx, tx)
		if err != nil {
			return err
		}
		endpoints, err := readEndpoints(ctx, tx, 0)
		if err != nil {
			return err
		}
		scoring, err := readScoring(ctx, tx)
		if err != nil {
			return err
		}
		for _, c := range chains {
			s := counted[c.ID]
			s.Scoring = scoring[c.ID]
			for _, e := range endpoints {
				if e.ChainID == c.ID {
					s.Endpoints = append(s.Endpoints, e)
				}
			}
			s.Upgrades, s.UpgradedAt = upgrades[c.ID].n, upgrades[c.ID].last
			s.Stalled = strings.HasPrefix(c.lastError, stalled)
			s.Chain, s.AsOf = c.Chain, c.latest()
			s.Reorgs, s.LastError, s.Halted = c.reorgs, c.lastError, c.halted
			out = append(out, s)
		}
		return nil
	})
	return out, err
}

// stalled begins the text a chain's loop leaves in last_error while the head moves
// and nothing is stored.
const stalled = "stalled: "

// UpgradedBefore tells whether the contract of an Upgraded log was upgraded in an
// earlier block: a proxy's first implementation is no news.
func (db *DB) UpgradedBefore(ctx context.Context, chainID uint64, l *types.Log) (before bool, err error) {
	// The kind is written out: it is the condition of index events_upgrades.
	err = db.readers.QueryRow(ctx, `select exists (select from events where chain_id = $1 and kind = 14 and block < $2 and address = $3)`,
		chainID, l.BlockNumber, l.Address[:]).Scan(&before)
	return before, failed("earlier upgrades", err)
}

// upgrades counts the Upgraded events of one chain's contracts, without the first
// of each, which is its deployment's.
type upgrades struct {
	n    int64
	last uint64 // block of the newest one
}

func readUpgrades(ctx context.Context, tx pgx.Tx) (map[uint64]upgrades, error) {
	// The kind is written out: it is the condition of index events_upgrades.
	rows, err := tx.Query(ctx, fmt.Sprintf("select chain_id, count(*) - count(distinct address), max(block) from events where kind = %d group by chain_id", repute.KindUpgraded))
	if err != nil {
		return nil, err
	}
	out := map[uint64]upgrades{}
	var chain uint64
	var u upgrades
	_, err = pgx.ForEachRow(rows, []any{&chain, &u.n, &u.last}, func() error {
		if u.n > 0 {
			out[chain] = u
		}
		return nil
	})
	return out, err
}

// ResolveAgent completes what a caller wrote for an agent: the chain from
// defaultChain (0 for none) or because only one is indexed, the registry from
// the chain. It does not look whether the agent exists. repute.ErrNotFound: no
// such chain, or another registry on it; repute.ErrInvalid: the chain is open.
func (db *DB) ResolveAgent(ctx context.Context, ref repute.AgentRef, defaultChain uint64) (id repute.AgentID, err error) {
	wanted := ref.ChainID
	if wanted == 0 {
		wanted = defaultChain
	}
	var ids []uint64
	if wanted != 0 {
		ids = []uint64{wanted}
	}
	err = db.view(ctx, "resolve agent", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := readChains(ctx, tx, ids)
		switch {
		case err != nil:
			return err
		case len(chains) > 1:
			return repute.Invalid("id", "names no chain, and several are indexed", repute.AgentIDForms)
		case len(chains) == 0 && wanted == 0:
			return &repute.MissingError{What: "a chain", Why: "is not indexed yet", Hint: "serve or import one first"}
		case len(chains) == 0:
			return repute.Missing("chain %d", wanted)
		}
		c := chains[0]
		if ref.Registry != nil && *ref.Registry != c.Identity {
			return repute.Missing("registry %s of chain %d", ref.Registry.Hex(), c.ID)
		}
		id = repute.AgentID{ChainID: c.ID, Registry: c.Identity, TokenID: ref.TokenID}
		return nil
	})
	return id, err
}

// subject is one agent that exists at the block asked, on one snapshot.
type subject struct {
	tx    pgx.Tx
	chain *chainView
	id    repute.AgentID // registry filled in
	block int64          // `everything` for latest
	asOf  repute.AsOf
}

// viewAgent runs f on an agent as of a block. repute.ErrNotFound: no such chain,
// registry or agent then.
func (db *DB) viewAgent(ctx context.Context, doing string, id repute.AgentID, at repute.At, f func(context.Context, subject) error) error {
	return db.view(ctx, doing, func(ctx context.Context, tx pgx.Tx) error {
		chains, err := readChains(ctx, tx, []uint64{id.ChainID})
		if err != nil {
			return err
		}
		if len(chains) == 0 || id.Registry != (common.Address{}) && id.Registry != chains[0].Identity {
			return repute.Missing("the registry of agent %s", id)
		}
		s := subject{tx: tx, chain: chains[0], id: id}
		s.id.Registry = s.chain.Identity
		if s.block, s.asOf, err = s.chain.at(ctx, tx, at); err != nil {
			return err
		}
		var exists bool
		err = tx.QueryRow(ctx, `
			select exists (select from agents where chain_id = $1 and token_id = $2 and registered_block <= $3)`,
			id.ChainID, tokenNum(id.TokenID), s.block).Scan(&exists)
		if err == nil && !exists {
			return s.missing(ctx)
		}
		return f(ctx, s)
	})
}

// missingChain is about a chain that is not here.
func missingChain(id uint64) error {
	return &repute.MissingError{What: fmt.Sprintf("chain %d", id), Hint: "/chains lists those that are"}
}

// missing tells an agent that came later from one that is not there.
func (s subject) missing(ctx context.Context) error {
	var since int64
	err := s.tx.QueryRow(ctx, "select registered_block from agents where chain_id = $1 and token_id = $2", s.id.ChainID, tokenNum(s.id.TokenID)).Scan(&since)
	if errors.Is(err, pgx.ErrNoRows) {
		return repute.Missing("agent %s", s.id.Short())
	} else if err != nil {
		return err
	}
	return &repute.MissingError{What: "agent " + s.id.Short(), Why: fmt.Sprintf("did not exist at block %d", s.block),
		Hint: fmt.Sprintf("it was registered at block %d", since)}
}
