package eventdb

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/pgcopy"
	"repute/store/trustmark"
)

// storeBlocks stores the headers of the batch and of its last block.
func storeBlocks(ctx context.Context, tx pgx.Tx, chainID uint64, b *Batch) error {
	c := pgcopy.New("blocks", "chain_id, number, hash, parent, time")
	seen := make(map[uint64]bool, len(b.Blocks)+1)
	keep := func(h *repute.Block) {
		if h.Number <= b.Parent.Number || h.Number > b.To.Number || seen[h.Number] {
			return
		}
		seen[h.Number] = true
		c.Row(chainID)
		c.Int64(int64(h.Number))
		c.Bytes(column.HashBytes(h.Hash))
		c.Bytes(column.HashBytes(h.Parent))
		c.Time(h.Time)
	}
	for i := range b.Blocks {
		keep(&b.Blocks[i])
	}
	keep(&b.To)
	return c.Send(ctx, tx)
}

// EventRows are the rows of events, and those of treasury_events, which refer to them.
type EventRows struct{ events, treasuries *pgcopy.Buffer }

// Send stores the rows. It MUST be called once.
func (r *EventRows) Send(ctx context.Context, tx pgx.Tx) error {
	if err := r.events.Send(ctx, tx); err != nil {
		return err
	}
	return r.treasuries.Send(ctx, tx)
}

// EncodeEvents returns the rows for records.
func EncodeEvents(chainID uint64, records []repute.Record) *EventRows {
	return &EventRows{encodeEvents(chainID, records), encodeTreasuryEvents(chainID, records)}
}

// encodeTreasuryEvents returns the rows of treasury_events for the records of treasuries.
func encodeTreasuryEvents(chainID uint64, records []repute.Record) *pgcopy.Buffer {
	c := pgcopy.New("treasury_events",
		"chain_id, block, log_index, address, tx_hash, kind, agent_key, run_key, task_key, fields")
	for i := range records {
		e, isTreasury := records[i].Event.(repute.TreasuryEvent)
		if !isTreasury {
			continue
		}
		l := &records[i].Log
		c.Row(chainID)
		at(c, chaindb.PointOf(l))
		c.Bytes(l.Address[:])
		c.Bytes(l.TxHash[:])
		c.Text(e.Name)
		c.MaybeHash(e.Agent)
		c.MaybeHash(e.Run)
		c.MaybeHash(e.Task)
		c.Bytes(e.Fields) // the binary form of json is its text
	}
	return c
}

// encodeEvents returns the rows of events for records.
func encodeEvents(chainID uint64, records []repute.Record) *pgcopy.Buffer {
	c := pgcopy.New("events", "chain_id, block, log_index, tx_index, kind, address, tx_hash, token_id, topics, data")
	const besideData = 300
	size := besideData * len(records)
	for i := range records {
		size += len(records[i].Log.Data)
	}
	c.Buf = slices.Grow(c.Buf, size)
	topics := make([]byte, 0, 4*common.HashLength)
	for i := range records {
		l := &records[i].Log
		c.Row(chainID)
		c.Int64(int64(l.BlockNumber))
		c.Int32(uint32(l.Index))
		c.Int32(uint32(l.TxIndex))
		c.Int16(int16(records[i].Event.Kind()))
		c.Bytes(l.Address[:])
		c.Bytes(l.TxHash[:])
		if id, ok := repute.AgentOf(records[i].Event); ok {
			c.Token(&id)
		} else {
			c.Null()
		}
		topics = topics[:0]
		for t := range l.Topics {
			topics = append(topics, l.Topics[t][:]...)
		}
		c.Bytes(topics)
		c.Bytes(l.Data)
	}
	return c
}

// encode encodes the rows that are added; the rows of agents are kept apart, because they replace
// stored ones.
func (d *Delta) encode(chainID uint64) {
	d.added = []*pgcopy.Buffer{
		d.encodeStates(chainID), d.encodeMetadata(chainID), d.encodeOperators(chainID),
		d.encodeResponses(chainID), d.encodeRequests(chainID), d.encodeAnswers(chainID), d.encodePending(chainID),
		d.encodeSums(chainID), d.encodeVotes(chainID),
	}
	if d.guessed == nil {
		d.added = append(d.added, encodeFeedback(chainID, d.feedback))
	}
	d.replaced = d.encodeAgents(chainID)
}

// Write stores the encoded rows. Stored rows are closed before the rows that follow them are added,
// and what is computed from rows comes after those.
func (d *Delta) Write(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if err := d.removeGuessed(ctx, tx, chainID); err != nil {
		return err
	}
	if err := d.closeHistories(ctx, tx, chainID); err != nil {
		return err
	}
	for _, c := range d.added {
		if err := c.Send(ctx, tx); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context, pgx.Tx, uint64) error{
		d.showURIs, d.attribute, d.revoke, d.addSums, d.replaceVotes, d.withdraw, d.removeAgents, d.addHours,
	} {
		if err := step(ctx, tx, chainID); err != nil {
			return err
		}
	}
	if d.replaced == nil {
		return nil
	}
	return d.replaced.Send(ctx, tx)
}

// removeGuessed deletes the ratings that the prefetch stored and that have no effect, as those of an unknown agent.
func (d *Delta) removeGuessed(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	var wrong []ratingKey
	counted := d.feedback
	for _, g := range d.guessed {
		if len(counted) > 0 && counted[0].at == g.at {
			counted = counted[1:]
			continue
		}
		wrong = append(wrong, ratingKey{pairKey{g.TokenID, g.Client}, g.Index})
	}
	if len(wrong) == 0 {
		return nil
	}
	ids, clients, indexes := ratingArrays(wrong)
	_, err := tx.Exec(ctx, `
		delete from feedback where ctid = any(array(
			select f.id from unnest($2::numeric[], $3::bytea[], $4::bigint[]) u(t, c, x)
			cross join lateral (select ctid id from feedback where chain_id = $1 and token_id = u.t and client = u.c and idx
				= u.x offset 0) f))`,
		chainID, ids, clients, indexes)
	return store.Failed("delete ratings without effect", err)
}

// showURIs tells documents which URIs agents show from this transaction on.
func (d *Delta) showURIs(ctx context.Context, tx pgx.Tx, _ uint64) error {
	ids := make([]int64, len(d.states))
	for i := range d.states {
		ids[i] = d.states[i].uri
	}
	return docdb.ShowURIs(ctx, tx, ids)
}

// addHours adds the events to the hours.
func (d *Delta) addHours(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if d.hours == nil {
		return nil
	}
	return d.hours.Write(ctx, tx, chainID)
}

// attribute sets whose the new ratings are that feedback gateways wrote. The events of their transactions are stored.
func (d *Delta) attribute(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if d.gateways == nil {
		return nil
	}
	var agents []repute.TokenID
	for _, r := range d.feedback {
		if slices.ContainsFunc(d.gateways, func(g []byte) bool { return common.BytesToAddress(g) == r.Client }) &&
			!slices.Contains(agents, r.TokenID) {
			agents = append(agents, r.TokenID)
		}
	}
	return chaindb.AttributeRatings(ctx, tx, chainID, d.gateways, column.TokenArray(agents), d.feedback[0].at.Block)
}

// closeHistories closes stored open rows. The newest row of a key is the open one, so the primary
// key finds it.
func (d *Delta) closeHistories(ctx context.Context, tx pgx.Tx, chainID uint64) error {
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
			chainID, column.NumericArray(d.closedStates, func(c *closedState) string { return c.id.Dec() }), ends)
	}
	if n := len(d.closedKeys); n > 0 {
		hashes, ends := make([][]byte, n), make([]uint64, n)
		for i := range ends {
			hashes[i], ends[i] = d.closedKeys[i].hash[:], d.closedKeys[i].to
		}
		b.Queue(`
			update metadata m set to_block = o.b from (
				select n.id, u.b from unnest($2::numeric[], $3::bytea[], $4::bigint[]) u(t, k, b) cross join lateral (
					select ctid id from metadata where chain_id = $1 and token_id = u.t and key_hash = u.k order by from_block desc
						limit 1) n) o
			where m.ctid = o.id`,
			chainID, column.NumericArray(d.closedKeys, func(c *closedKey) string { return c.token.Dec() }),
			hashes, ends)
	}
	for _, s := range d.closedSpans {
		b.Queue(`update operators set to_block = $4 where chain_id = $1 and owner = $2 and operator = $3 and to_block is null`,
			chainID, s.owner[:], s.operator[:], s.to)
	}
	if b.Len() == 0 {
		return nil
	}
	return store.Failed("close histories", tx.SendBatch(ctx, &b).Close())
}

// encodeStates encodes the rows of agent_states.
func (d *Delta) encodeStates(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("agent_states",
		"chain_id, token_id, from_block, to_block, owner, claimed, wallet, approved, uri_id")
	for i := range d.states {
		s := &d.states[i]
		c.Row(chainID)
		c.Token(&s.id)
		c.Int64(int64(s.from))
		c.MaybeBlock(s.to)
		state(c, &s.agentState)
	}
	return c
}

// state appends the columns of an agent's state.
func state(c *pgcopy.Buffer, s *agentState) {
	c.Bytes(column.AddressBytes(s.owner))
	c.Bool(s.claimed)
	c.Bytes(column.AddressBytes(s.wallet))
	c.Bytes(column.AddressBytes(s.approved))
	c.Int64(s.uri)
}

// encodeMetadata encodes the rows of metadata.
func (d *Delta) encodeMetadata(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("metadata", "chain_id, token_id, key_hash, from_block, to_block, log_index, key, value")
	for i := range d.metadata {
		m := &d.metadata[i]
		c.Row(chainID)
		c.Token(&m.token)
		c.Bytes(m.hash[:])
		c.Int64(int64(m.at.Block))
		c.MaybeBlock(m.to)
		c.Int32(m.at.Log)
		c.Bytes(m.key)
		c.Bytes(m.value)
	}
	return c
}

// encodeOperators encodes the rows of operators.
func (d *Delta) encodeOperators(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("operators", "chain_id, owner, operator, from_block, to_block")
	for i := range d.operators {
		o := &d.operators[i]
		c.Row(chainID)
		c.Bytes(o.owner[:])
		c.Bytes(o.operator[:])
		c.Int64(int64(o.from))
		c.MaybeBlock(o.to)
	}
	return c
}

// encodeFeedback encodes rows of feedback.
func encodeFeedback(chainID uint64, rows []*feedbackRow) *pgcopy.Buffer {
	c := pgcopy.New("feedback",
		"chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint, hash, revoked_block, revoked_log")
	for _, f := range rows {
		c.Row(chainID)
		c.Token(&f.TokenID)
		c.Bytes(f.Client[:])
		c.Int64(int64(f.Index))
		at(c, f.at)
		c.Integer(f.Value)
		c.Int16(int16(f.Decimals))
		c.Int64(f.tag1)
		c.Int64(f.tag2)
		c.Int64(f.uri)
		c.Text(f.Endpoint)
		c.Bytes(column.HashBytes(f.FeedbackHash))
		if f.revoked == (chaindb.Point{}) {
			c.Null()
			c.Null()
		} else {
			at(c, f.revoked)
		}
	}
	return c
}

// at appends the two columns of a position.
func at(c *pgcopy.Buffer, p chaindb.Point) {
	c.Int64(int64(p.Block))
	c.Int32(p.Log)
}

// revoke marks stored ratings as revoked.
func (d *Delta) revoke(ctx context.Context, tx pgx.Tx, chainID uint64) error {
	if len(d.revocations) == 0 {
		return nil
	}
	keys := make([]ratingKey, len(d.revocations))
	blocks, logs := make([]uint64, len(keys)), make([]uint32, len(keys))
	for i, r := range d.revocations {
		keys[i], blocks[i], logs[i] = r.ratingKey, r.at.Block, r.at.Log
	}
	ids, clients, indexes := ratingArrays(keys)
	_, err := tx.Exec(ctx, `
		update feedback f set revoked_block = o.b, revoked_log = o.l from (
			select n.id, u.b, u.l from unnest($2::numeric[], $3::bytea[], $4::bigint[], $5::bigint[], $6::integer[]) u(t, c,
				x, b, l)
			cross join lateral (select ctid id from feedback where chain_id = $1 and token_id = u.t and client = u.c and idx
				= u.x offset 0) n) o
		where f.ctid = o.id`,
		chainID, ids, clients, indexes, blocks, logs)
	return store.Failed("revoke", err)
}

// encodeResponses encodes the rows of responses.
func (d *Delta) encodeResponses(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("responses", "chain_id, token_id, client, idx, block, log_index, responder, uri_id, hash")
	for i := range d.responses {
		r := &d.responses[i]
		c.Row(chainID)
		c.Token(&r.TokenID)
		c.Bytes(r.Client[:])
		c.Int64(int64(r.Index))
		at(c, r.at)
		c.Bytes(r.Responder[:])
		c.Int64(r.uri)
		c.Bytes(column.HashBytes(r.ResponseHash))
	}
	return c
}

// encodeRequests encodes the rows of validation_requests.
func (d *Delta) encodeRequests(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("validation_requests",
		"chain_id, contract, request_hash, token_id, validator, uri_id, block, log_index")
	for i := range d.requests {
		r := &d.requests[i]
		c.Row(chainID)
		c.Bytes(r.contract[:])
		c.Bytes(r.RequestHash[:])
		c.Token(&r.TokenID)
		c.Bytes(r.Validator[:])
		c.Int64(r.uri)
		at(c, r.at)
	}
	return c
}

// encodeAnswers encodes the rows of validation_responses.
func (d *Delta) encodeAnswers(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("validation_responses",
		"chain_id, contract, request_hash, block, log_index, response, uri_id, hash, tag")
	for i := range d.answers {
		a := &d.answers[i]
		c.Row(chainID)
		c.Bytes(a.contract[:])
		c.Bytes(a.RequestHash[:])
		at(c, a.at)
		c.Int16(int16(a.Response))
		c.Int64(a.uri)
		c.Bytes(column.HashBytes(a.ResponseHash))
		c.Int64(a.tag)
	}
	return c
}

// encodePending encodes the rows of pending.
func (d *Delta) encodePending(chainID uint64) *pgcopy.Buffer {
	c := pgcopy.New("pending", "chain_id, block, log_index, token_id, reason")
	for i := range d.Pending {
		p := &d.Pending[i]
		c.Row(chainID)
		at(c, p.At)
		c.MaybeToken(p.id)
		c.Text(p.reason)
	}
	return c
}

// StoreChanges appends changes to the feed and marks the agents whose scores they may move.
func StoreChanges(ctx context.Context, tx pgx.Tx, chainID uint64, changes []ChangeRow) error {
	c := pgcopy.New("changes", "chain_id, kind, block, log_index, token_id, data")
	for i := range changes {
		r := &changes[i]
		c.Row(chainID)
		c.Text(r.Kind)
		at(c, r.At)
		c.MaybeToken(r.ID)
		c.Json(r.Data)
	}
	if err := c.Send(ctx, tx); err != nil {
		return err
	}
	return trustmark.Add(ctx, tx, chainID, marksOf(changes))
}

// marksOf returns what changes mean for scores. A rewind marks its agents itself.
func marksOf(changes []ChangeRow) (m trustmark.Marks) {
	for i := range changes {
		r := &changes[i]
		switch {
		case r.ID != nil:
			m.Tokens = append(m.Tokens, *r.ID)
		case r.From > 0:
			m.Blocks = append(m.Blocks, repute.BlockRange{From: r.From, To: r.At.Block})
		case r.Owner != (common.Address{}):
			m.Owners = append(m.Owners, r.Owner)
		}
		if r.Kind == changedata.KindRepaired {
			m.Late, m.All = true, m.All || r.ID == nil
		}
	}
	return m
}
