package trustdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// Snapshot reads all agents and ratings of a chain as of a block, in one transaction. Its rows have the wire form of
// Postgres, because decoding ten million rows into the types of this package takes longer than all else.
//
// It is valid until the callback of ReadSnapshot returns, and for one goroutine: its statements share a connection, so
// that each must be read to its end before the next one. Rows that a callback gets are valid until it returns.
type Snapshot struct {
	q evidence
	// Run is the newest run of the chain, 0 when there is none.
	Run uint64
}

// ReadSnapshot calls use with a snapshot of a chain as of a block. It may take as long as ctx allows.
func ReadSnapshot(ctx context.Context, db *store.DB, chainID, block uint64,
	use func(context.Context, *Snapshot) error) error {
	return readLong(ctx, db, fmt.Sprintf("read ratings of chain %d", chainID), func(tx pgx.Tx) error {
		c, err := chaindb.ScanChainRow(chainID, tx.QueryRow(ctx, chaindb.SelectChain, chainID))
		if err != nil {
			return err
		}
		s := Snapshot{q: evidence{tx: tx, chain: repute.Chain{ID: chainID, Identity: c.Identity}, block: int64(block),
			after: -1}}
		err = tx.QueryRow(ctx, "select coalesce(max(run), 0) from trust_runs where chain_id = $1", chainID).Scan(&s.Run)
		if err != nil {
			return err
		}
		return use(ctx, &s)
	})
}

// readLong runs f in a transaction that reads on one snapshot. Its statements may take as long as ctx allows, because
// each may read all that a chain has.
func readLong(ctx context.Context, db *store.DB, doing string, f func(pgx.Tx) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return db.InTx(ctx, options, doing, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0"); err != nil {
			return err
		}
		return f(tx)
	})
}

// Chain returns the chain with its Identity Registry.
func (s *Snapshot) Chain() repute.Chain { return s.q.chain }

// Continues reports whether what was read as of an earlier block, when run was the newest run, still holds: the block
// is stored, and neither events were found late nor payers of ratings changed since.
func (s *Snapshot) Continues(ctx context.Context, block repute.Block, run uint64) (continues bool, err error) {
	err = s.q.tx.QueryRow(ctx, `
		select exists (select from blocks where (chain_id, number, hash) = ($1, $2, $3))
			and not exists (select from trust_marks where chain_id = $1 and (late or every))
			and not exists (select from cursors where (job, chain_id, part) = ('late logs', $1, 0) and position > 0)
			and not exists (select from trust_runs where chain_id = $1 and run > $4 and repaired <> 0)`,
		s.q.chain.ID, int64(block.Number), block.Hash[:], int64(run)).Scan(&continues)
	return continues, err
}

// Counts returns how many agents had no event after the snapshot's block, and how many live ratings these have.
func (s *Snapshot) Counts(ctx context.Context) (agents, ratings int64, err error) {
	err = s.q.tx.QueryRow(ctx, `
		select count(*), coalesce(sum(feedback), 0)::bigint from agents where chain_id = $1 and updated_block <= $2`,
		s.q.chain.ID, s.q.block).Scan(&agents, &ratings)
	return agents, ratings, err
}

// Size returns how many agents and live ratings the chain has now, for the size of memory.
func (s *Snapshot) Size(ctx context.Context) (agents, ratings int, err error) {
	err = s.q.tx.QueryRow(ctx, "select count(*), coalesce(sum(feedback), 0)::bigint from agents where chain_id = $1",
		s.q.chain.ID).Scan(&agents, &ratings)
	return agents, ratings, err
}

// Changed returns the agents with an event after a block.
func (s *Snapshot) Changed(ctx context.Context, after uint64) ([]repute.TokenID, error) {
	rows, _ := s.q.tx.Query(ctx, "select token_id from agents where chain_id = $1 and updated_block > $2",
		s.q.chain.ID, int64(after))
	return pgx.CollectRows(rows, scanToken)
}

// scanToken reads a token id.
func scanToken(row pgx.CollectableRow) (t repute.TokenID, err error) {
	return t, row.Scan((*column.TokenNum)(&t))
}

// each calls use with the columns of every row in their binary form. They are valid until use returns.
func (s *Snapshot) each(ctx context.Context, sql string, args []any, use func(columns [][]byte) error) error {
	rows, err := s.q.tx.Query(ctx, sql, append([]any{pgx.QueryResultFormats{pgx.BinaryFormatCode}}, args...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := use(rows.RawValues()); err != nil {
			return err
		}
	}
	return rows.Err()
}

// SnapshotRating is one live rating. Token and Value are numerics of Postgres in their binary form, which is the same
// for equal numbers; DecodeToken and DecodeValue decode them.
type SnapshotRating struct {
	Token, Value []byte
	Client       common.Address
	Payer        []byte // nil for a client that is no gateway, empty where no ticket names the payer
	Decimals     uint8
	// Tag1, Tag2 and URI are the keys of the rows in tags and uris.
	Tag1, Tag2, URI int64
	Block           uint64
	LogIndex        uint32
	Time            int64 // of the block in Unix seconds, 0 when unknown
}

// Revoked returns the ratings up to a block that were revoked after it, by their agents.
func (s *Snapshot) Revoked(ctx context.Context, after uint64) (map[repute.TokenID][]LogAt, error) {
	rows, _ := s.q.tx.Query(ctx, `
		select token_id, block, log_index from feedback
		where chain_id = $1 and block <= $2 and revoked_block > $2 and revoked_block <= $3`,
		s.q.chain.ID, int64(after), s.q.block)
	out := map[repute.TokenID][]LogAt{}
	var token column.TokenNum
	var at LogAt
	_, err := pgx.ForEachRow(rows, []any{&token, &at.Block, &at.LogIndex}, func() error {
		out[repute.TokenID(token)] = append(out[repute.TokenID(token)], at)
		return nil
	})
	return out, err
}

// Ratings reads the live ratings of agents, or of all when tokens is nil, in no particular order. It leaves out those
// up to block after, none for -1.
func (s *Snapshot) Ratings(ctx context.Context, tokens []repute.TokenID, after int64,
	use func(*SnapshotRating) error) error {
	of, args := "", []any{s.q.chain.ID, s.q.block}
	if tokens != nil {
		of, args = "and f.token_id = any($3::numeric[]) and f.block > $4", append(args, column.TokenArray(tokens),
			after)
	}
	var r SnapshotRating
	return s.each(ctx, `
		select f.token_id, f.client, f.payer, f.value, f.decimals, f.tag1, f.tag2, f.uri_id, f.block, f.log_index, b.time
		from feedback f
		left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block)
		where f.chain_id = $1 and f.block <= $2 and (f.revoked_block is null or f.revoked_block > $2) `+of, args,
		func(c [][]byte) error {
			r = SnapshotRating{Token: c[0], Client: common.BytesToAddress(c[1]), Payer: c[2], Value: c[3],
				Decimals: uint8(integer(c[4])), Tag1: integer(c[5]), Tag2: integer(c[6]), URI: integer(c[7]),
				Block: uint64(integer(c[8])), LogIndex: uint32(integer(c[9])), Time: seconds(c[10])}
			return use(&r)
		})
}

// integer decodes a binary smallint, integer or bigint.
func integer(b []byte) int64 {
	switch len(b) {
	case 2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.BigEndian.Uint32(b)))
	case 8:
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// seconds decodes a binary timestamptz, which counts microseconds from 2000, to Unix seconds; null is 0.
func seconds(b []byte) int64 {
	if b == nil {
		return 0
	}
	return time.UnixMicro(integer(b) + time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()).Unix()
}

// DecodeToken decodes the binary form of a token id.
func (s *Snapshot) DecodeToken(raw []byte) (t repute.TokenID, err error) {
	err = s.q.tx.Conn().TypeMap().Scan(pgtype.NumericOID, pgx.BinaryFormatCode, raw, (*column.TokenNum)(&t))
	return t, err
}

// DecodeValue decodes the binary form of a rating's value.
func (s *Snapshot) DecodeValue(raw []byte) (v column.BigNum, err error) {
	err = s.q.tx.Conn().TypeMap().Scan(pgtype.NumericOID, pgx.BinaryFormatCode, raw, &v)
	return v, err
}

// SnapshotTag is a tag, cut like those of Row.
type SnapshotTag struct {
	Text  string
	Other bool // it was too long to be read
}

// Tags returns tags by their keys.
func (s *Snapshot) Tags(ctx context.Context, keys []int64) (map[int64]SnapshotTag, error) {
	out := make(map[int64]SnapshotTag, len(keys))
	rows, _ := s.q.tx.Query(ctx, "select t.id, "+tagHead("t.value")+" from tags t where t.id = any($1)", keys)
	var key int64
	var text []byte
	_, err := pgx.ForEachRow(rows, []any{&key, &text}, func() error {
		out[key] = SnapshotTag{string(text), text == nil}
		return nil
	})
	return out, err
}

// SnapshotState is one state in the history of an agent. Token is a numeric in its binary form.
type SnapshotState struct {
	Token                   []byte
	From                    uint64
	Time                    int64 // of the block in Unix seconds, 0 when unknown
	Owner, Wallet, Approved common.Address
}

// States reads the states of agents, or of all when tokens is nil, up to the block: those of one agent follow each
// other, the oldest first.
func (s *Snapshot) States(ctx context.Context, tokens []repute.TokenID, use func(*SnapshotState) error) error {
	of, args := "", []any{s.q.chain.ID, s.q.block}
	if tokens != nil {
		of, args = "and s.token_id = any($3::numeric[])", append(args, column.TokenArray(tokens))
	}
	var state SnapshotState
	return s.each(ctx, `
		select s.token_id, s.from_block, b.time, s.owner, s.wallet, s.approved
		from agent_states s left join blocks b on (b.chain_id, b.number) = (s.chain_id, s.from_block)
		where s.chain_id = $1 and s.from_block <= $2 `+of+` order by s.token_id, s.from_block`, args,
		func(c [][]byte) error {
			state = SnapshotState{Token: c[0], From: uint64(integer(c[1])), Time: seconds(c[2]),
				Owner: common.BytesToAddress(c[3]), Wallet: common.BytesToAddress(c[4]),
				Approved: common.BytesToAddress(c[5])}
			return use(&state)
		})
}

// Acted returns the agents, among tokens or all when nil, that somebody else than their first owner registered or
// received, or that an owner changed: those with an event that OwnerEvent tells of besides the mint for that owner.
func (s *Snapshot) Acted(ctx context.Context, tokens []repute.TokenID) ([]repute.TokenID, error) {
	of := ""
	wallet := column.Keccak(chaindb.WalletKey)
	args := []any{s.q.chain.ID, s.q.block, int16(repute.KindTransfer), int16(repute.KindRegistered),
		int16(repute.KindURIUpdated), int16(repute.KindMetadataSet), wallet[:], make([]byte, common.AddressLength)}
	if tokens != nil {
		of, args = "and e.token_id = any($9::numeric[])", append(args, column.TokenArray(tokens))
	}
	rows, _ := s.q.tx.Query(ctx, `
		select distinct e.token_id from events e
		left join lateral (select owner from agent_states where chain_id = $1 and token_id = e.token_id
			order by from_block limit 1) s on e.kind in ($3, $4)
		where e.chain_id = $1 and e.block <= $2 and e.token_id is not null `+of+` and case e.kind
			when $3 then substring(e.topics from 45 for 20) <> $8 or substring(e.topics from 77 for 20) is distinct from s.owner
			when $4 then substring(e.topics from 77 for 20) is distinct from s.owner
			when $5 then true
			when $6 then substring(e.topics from 65 for 32) <> $7
			else false end`, args...)
	return pgx.CollectRows(rows, scanToken)
}

// Subjects reads agents without their ratings, answers and operators.
func (s *Snapshot) Subjects(ctx context.Context, tokens []repute.TokenID) ([]Subject, error) {
	var b pgx.Batch
	found := s.q.owned(&b, tokens)
	err := s.q.tx.SendBatch(ctx, &b).Close()
	return found.list, err
}

// Operators returns the operators of each owner, in order.
func (s *Snapshot) Operators(ctx context.Context) (map[common.Address][]common.Address, error) {
	rows, _ := s.q.tx.Query(ctx, `
		select owner, operator from operators
		where chain_id = $1 and from_block <= $2 and (to_block is null or to_block > $2) order by owner, operator`,
		s.q.chain.ID, s.q.block)
	out := map[common.Address][]common.Address{}
	var owner, operator []byte
	_, err := pgx.ForEachRow(rows, []any{&owner, &operator}, func() error {
		by := common.BytesToAddress(owner)
		out[by] = append(out[by], common.BytesToAddress(operator))
		return nil
	})
	return out, err
}

// Answers reads the latest answers of the validation contracts, without their URIs. It calls use with the agent of
// each.
func (s *Snapshot) Answers(ctx context.Context, validations []common.Address, use func(repute.TokenID, Row)) error {
	rows, _ := s.q.tx.Query(ctx, `
		select distinct on (x.contract, x.request_hash) q.token_id, q.validator, x.response,
			`+tagHead("t.value")+`, x.block, x.log_index, b.time
		from validation_responses x
		join validation_requests q using (chain_id, contract, request_hash)
		join tags t on t.id = x.tag
		left join blocks b on (b.chain_id, b.number) = (x.chain_id, x.block)
		where x.chain_id = $1 and x.block <= $2 and x.contract = any($3)
		order by x.contract, x.request_hash, x.block desc, x.log_index desc`, s.q.chain.ID, s.q.block,
		column.AddressColumn(validations))
	var token column.TokenNum
	var r Row
	var validator, tag []byte
	var response int64
	var at *time.Time
	_, err := pgx.ForEachRow(rows, []any{&token, &validator, &response, &tag, &r.Block, &r.LogIndex, &at}, func() error {
		r = Row{Rater: common.BytesToAddress(validator), Validation: true,
			Amount: repute.Amount{Value: big.NewInt(response)},
			Tag1:   string(tag), Other: tag == nil, Block: r.Block, LogIndex: r.LogIndex, Time: column.TimeOf(at)}
		use(repute.TokenID(token), r)
		return nil
	})
	return err
}

// UnlikeRun returns the agents whose newest evidence may differ from that as of a run's block, or that have verified
// payments or requests to the validation contracts.
func UnlikeRun(ctx context.Context, db *store.DB, chainID, block uint64,
	validations []common.Address) (map[repute.TokenID]bool, error) {
	rows, _ := db.Pool().Query(ctx, `
		select token_id from agents where chain_id = $1 and updated_block > $2
		union select a.token_id from operators o join agents a on (a.chain_id, a.owner) = ($1, o.owner)
			where o.chain_id = $1 and (o.from_block > $2 or o.to_block > $2)
		union select token_id from payments where chain_id = $1 and state = 'verified'
		union select token_id from validation_requests where chain_id = $1 and contract = any($3)`,
		chainID, int64(block), column.AddressColumn(validations))
	out, err := column.CollectTokens(rows)
	return out, store.Failed(fmt.Sprintf("agents of chain %d that changed after block %d", chainID, block), err)
}
