package store

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
)

// storeBlocks keeps the headers of the batch and of its last block.
func storeBlocks(ctx context.Context, tx pgx.Tx, chainID uint64, b *Batch) error {
	c := newCopy("blocks", "chain_id, number, hash, parent, time")
	seen := make(map[uint64]bool, len(b.Blocks)+1)
	keep := func(h *repute.Block) {
		if h.Number <= b.Parent.Number || h.Number > b.To.Number || seen[h.Number] {
			return
		}
		seen[h.Number] = true
		c.row()
		c.int64(int64(chainID))
		c.int64(int64(h.Number))
		c.bytes(hashBytes(h.Hash))
		c.bytes(hashBytes(h.Parent))
		c.time(h.Time)
	}
	for i := range b.Blocks {
		keep(&b.Blocks[i])
	}
	keep(&b.To)
	return c.send(ctx, tx)
}

func encodeEvents(chainID uint64, records []repute.Record) *copyBuffer {
	c := newCopy("events", "chain_id, block, log_index, tx_index, kind, address, tx_hash, token_id, topics, data")
	const besideData = 300
	size := besideData * len(records)
	for i := range records {
		size += len(records[i].Log.Data)
	}
	c.buf = slices.Grow(c.buf, size)
	topics := make([]byte, 0, 4*common.HashLength)
	for i := range records {
		l := &records[i].Log
		c.row()
		c.int64(int64(chainID))
		c.int64(int64(l.BlockNumber))
		c.int32(uint32(l.Index))
		c.int32(uint32(l.TxIndex))
		c.int16(int16(records[i].Event.Kind()))
		c.bytes(l.Address[:])
		c.bytes(l.TxHash[:])
		if id, ok := repute.AgentOf(records[i].Event); ok {
			c.token(&id)
		} else {
			c.null()
		}
		topics = topics[:0]
		for t := range l.Topics {
			topics = append(topics, l.Topics[t][:]...)
		}
		c.bytes(topics)
		c.bytes(l.Data)
	}
	return c
}

// encode makes the rows to be added ready for COPY; agents replace stored ones and
// are kept apart.
func (d *delta) encode(chainID uint64) {
	d.added = []*copyBuffer{
		d.encodeStates(chainID), d.encodeMetadata(chainID), d.encodeOperators(chainID), d.encodeFeedback(chainID),
		d.encodeResponses(chainID), d.encodeRequests(chainID), d.encodeAnswers(chainID), d.encodePending(chainID),
		d.encodeSums(chainID), d.encodeVotes(chainID),
	}
	d.replaced = d.encodeAgents(chainID)
}

// write stores the encoded delta. Closings come before the rows that follow them,
// and what is recomputed from rows comes after those.
func (d *delta) write(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if err := d.closeHistories(ctx, tx, chainID); err != nil {
		return err
	}
	for _, c := range d.added {
		if err := c.send(ctx, tx); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context, pgx.Tx, uint64) error{
		d.revoke, d.addSums, d.replaceVotes, d.withdraw, d.removeAgents,
	} {
		if err := step(ctx, tx, chainID); err != nil {
			return err
		}
	}
	if d.replaced == nil {
		return nil
	}
	return d.replaced.send(ctx, tx)
}

// closeHistories ends the stored open rows. The newest row of a key is the open
// one: it is found through the primary key.
func (d *delta) closeHistories(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	var b pgx.Batch
	if n := len(d.closedStates); n > 0 {
		ends := make([]uint64, n)
		for i := range ends {
			ends[i] = d.closedStates[i].to
		}
		b.Queue(`
			update agent_states s set to_block = o.b from (
				select n.id, u.b from unnest($2::numeric[], $3::bigint[]) u(t, b) cross join lateral (
					select ctid id from agent_states where chain_id = $1 and token_id = u.t order by from_block desc limit 1) n) o
			where s.ctid = o.id`,
			chainID, numericArray(d.closedStates, func(c *closedState) string { return c.id.Dec() }), ends)
	}
	if n := len(d.closedKeys); n > 0 {
		hashes, ends := make([][]byte, n), make([]uint64, n)
		for i := range ends {
			hashes[i], ends[i] = d.closedKeys[i].hash[:], d.closedKeys[i].to
		}
		b.Queue(`
			update metadata m set to_block = o.b from (
				select n.id, u.b from unnest($2::numeric[], $3::bytea[], $4::bigint[]) u(t, k, b) cross join lateral (
					select ctid id from metadata where chain_id = $1 and token_id = u.t and key_hash = u.k order by from_block desc limit 1) n) o
			where m.ctid = o.id`,
			chainID, numericArray(d.closedKeys, func(c *closedKey) string { return c.token.Dec() }), hashes, ends)
	}
	for _, s := range d.closedSpans {
		b.Queue(`update operators set to_block = $4 where chain_id = $1 and owner = $2 and operator = $3 and to_block is null`,
			chainID, s.owner[:], s.operator[:], s.to)
	}
	if b.Len() == 0 {
		return nil
	}
	return failed("close histories", tx.SendBatch(ctx, &b).Close())
}

func (d *delta) encodeStates(chainID uint64) *copyBuffer {
	c := newCopy("agent_states", "chain_id, token_id, from_block, to_block, owner, claimed, wallet, approved, uri_id")
	for i := range d.states {
		s := &d.states[i]
		c.row()
		c.int64(int64(chainID))
		c.token(&s.id)
		c.block(s.from, false)
		c.block(s.to, true)
		c.state(&s.agentState)
	}
	return c
}

func (c *copyBuffer) state(s *agentState) {
	c.bytes(addressBytes(s.owner))
	c.bool(s.claimed)
	c.bytes(addressBytes(s.wallet))
	c.bytes(addressBytes(s.approved))
	c.int64(s.uri)
}

func (d *delta) encodeMetadata(chainID uint64) *copyBuffer {
	c := newCopy("metadata", "chain_id, token_id, key_hash, from_block, to_block, log_index, key, value")
	for i := range d.metadata {
		m := &d.metadata[i]
		c.row()
		c.int64(int64(chainID))
		c.token(&m.token)
		c.bytes(m.hash[:])
		c.block(m.at.block, false)
		c.block(m.to, true)
		c.int32(m.at.log)
		c.bytes(m.key)
		c.bytes(m.value)
	}
	return c
}

func (d *delta) encodeOperators(chainID uint64) *copyBuffer {
	c := newCopy("operators", "chain_id, owner, operator, from_block, to_block")
	for i := range d.operators {
		o := &d.operators[i]
		c.row()
		c.int64(int64(chainID))
		c.bytes(o.owner[:])
		c.bytes(o.operator[:])
		c.block(o.from, false)
		c.block(o.to, true)
	}
	return c
}

func (d *delta) encodeFeedback(chainID uint64) *copyBuffer {
	c := newCopy("feedback", "chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint, hash, revoked_block, revoked_log")
	for _, f := range d.feedback {
		c.row()
		c.int64(int64(chainID))
		c.token(&f.TokenID)
		c.bytes(f.Client[:])
		c.int64(int64(f.Index))
		c.at(f.at)
		c.integer(f.Value)
		c.int16(int16(f.Decimals))
		c.int64(f.tag1)
		c.int64(f.tag2)
		c.int64(f.uri)
		c.text(f.Endpoint)
		c.bytes(hashBytes(f.FeedbackHash))
		if f.revoked == (point{}) {
			c.null()
			c.null()
		} else {
			c.at(f.revoked)
		}
	}
	return c
}

// at writes the two columns of a position.
func (c *copyBuffer) at(p point) {
	c.int64(int64(p.block))
	c.int32(p.log)
}

func (d *delta) revoke(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if len(d.revocations) == 0 {
		return nil
	}
	keys := make([]ratingKey, len(d.revocations))
	blocks, logs := make([]uint64, len(keys)), make([]uint32, len(keys))
	for i, r := range d.revocations {
		keys[i], blocks[i], logs[i] = r.ratingKey, r.at.block, r.at.log
	}
	ids, clients, indexes := ratingArrays(keys)
	_, err := tx.Exec(ctx, `
		update feedback f set revoked_block = o.b, revoked_log = o.l from (
			select n.id, u.b, u.l from unnest($2::numeric[], $3::bytea[], $4::bigint[], $5::bigint[], $6::integer[]) u(t, c, x, b, l)
			cross join lateral (select ctid id from feedback where chain_id = $1 and token_id = u.t and client = u.c and idx = u.x offset 0) n) o
		where f.ctid = o.id`,
		chainID, ids, clients, indexes, blocks, logs)
	return failed("revoke", err)
}

func (d *delta) encodeResponses(chainID uint64) *copyBuffer {
	c := newCopy("responses", "chain_id, token_id, client, idx, block, log_index, responder, uri_id, hash")
	for i := range d.responses {
		r := &d.responses[i]
		c.row()
		c.int64(int64(chainID))
		c.token(&r.TokenID)
		c.bytes(r.Client[:])
		c.int64(int64(r.Index))
		c.at(r.at)
		c.bytes(r.Responder[:])
		c.int64(r.uri)
		c.bytes(hashBytes(r.ResponseHash))
	}
	return c
}

func (d *delta) encodeRequests(chainID uint64) *copyBuffer {
	c := newCopy("validation_requests", "chain_id, contract, request_hash, token_id, validator, uri_id, block, log_index")
	for i := range d.requests {
		r := &d.requests[i]
		c.row()
		c.int64(int64(chainID))
		c.bytes(r.contract[:])
		c.bytes(r.RequestHash[:])
		c.token(&r.TokenID)
		c.bytes(r.Validator[:])
		c.int64(r.uri)
		c.at(r.at)
	}
	return c
}

func (d *delta) encodeAnswers(chainID uint64) *copyBuffer {
	c := newCopy("validation_responses", "chain_id, contract, request_hash, block, log_index, response, uri_id, hash, tag")
	for i := range d.answers {
		a := &d.answers[i]
		c.row()
		c.int64(int64(chainID))
		c.bytes(a.contract[:])
		c.bytes(a.RequestHash[:])
		c.at(a.at)
		c.int16(int16(a.Response))
		c.int64(a.uri)
		c.bytes(hashBytes(a.ResponseHash))
		c.int64(a.tag)
	}
	return c
}

func (d *delta) encodePending(chainID uint64) *copyBuffer {
	c := newCopy("pending", "chain_id, block, log_index, token_id, reason")
	for i := range d.pending {
		p := &d.pending[i]
		c.row()
		c.int64(int64(chainID))
		c.at(p.at)
		c.maybeToken(p.id)
		c.text(p.reason)
	}
	return c
}

func storeChanges(ctx context.Context, tx pgx.Tx, chainID uint64, changes []changeRow) error {
	c := newCopy("changes", "chain_id, kind, block, log_index, token_id, data")
	for i := range changes {
		r := &changes[i]
		c.row()
		c.int64(int64(chainID))
		c.text(r.kind)
		c.at(r.at)
		c.maybeToken(r.id)
		c.json(r.data)
	}
	return c.send(ctx, tx)
}
