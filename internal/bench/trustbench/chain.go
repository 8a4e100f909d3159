package trustbench

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/bench/harness"
	"repute/internal/pg"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// TrustEpoch is what epochs of the product took on one chain: from the moment that the epoch's last block is final
// until its final scores are visible.
type TrustEpoch struct {
	Ratings int `json:"ratings"`
	Agents  int `json:"agents"`
	New     int `json:"new_ratings"` // in each later epoch
	Large   int `json:"large_agent"` // ratings of the agent with most of them
	// Events are how long the first rating after a later epoch took from its commit until its score was visible: of an
	// agent with a usual number of ratings, and then of that with most.
	Events      []float64 `json:"event_ms"`
	LargeEvents []float64 `json:"large_event_ms"`
	// First is the epoch after a start, which reads and stores everything. Later are those that follow.
	First    float64   `json:"first_seconds"`
	Later    []float64 `json:"later_seconds"`
	CPU      float64   `json:"cpu_seconds"`          // of the product for all of them
	PgCPU    float64   `json:"postgres_cpu_seconds"` // of its sessions, without helpers that work for them
	PeakMB   float64   `json:"peak_rss_mb"`          // of the product, with loading
	LoadMean float64   `json:"load_average"`         // of the machine at the end
}

// Later epochs, and the limit of one run of the product. The limit ends a product that hangs; ten million ratings take
// minutes.
const (
	laterEpochs = 3
	epochLimit  = time.Hour
)

// crowdChain is the chain of the benchmark, whose epochs have crowdEpoch blocks by the shipped parameters.
const (
	crowdChain = 31337
	crowdEpoch = 20
)

// measureEpochs measures epochs of the product over a chain of so many ratings, on a private Postgres. The product has
// the role trust alone, and the rows are written as an indexer would: what is measured starts with a final block.
func measureEpochs(ctx context.Context, p harness.Program, ratings int) (m *TrustEpoch, err error) {
	server, err := harness.StartServer(ctx, pg.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	d, err := server.Fresh(ctx)
	if err != nil {
		return nil, err
	}
	x := &crowdChainBench{program: p, ratings: ratings, large: min(largeRatings, ratings/4), d: d}
	if err := x.fill(ctx); err != nil {
		return nil, fmt.Errorf("chain of %d ratings: %w", ratings, err)
	}
	if m, err = x.measure(ctx); err != nil {
		return nil, fmt.Errorf("epochs of %d ratings: %w", ratings, err)
	}
	return m, nil
}

// crowdChainBench is a chain of random ratings in a database.
type crowdChainBench struct {
	program harness.Program
	ratings int
	large   int // ratings of the agent with most, which has the highest token id; a quarter of all at most
	d       *harness.Database
	last    int64 // block of the newest epoch's end, which rate raises
}

// fill stores the chain: ten ratings for each agent, whose popularity follows a power law, a hundred in each block.
// One party in a hundred is a root.
func (x *crowdChainBench) fill(ctx context.Context) error {
	x.last = int64(max(x.ratings/100/crowdEpoch, 1) * crowdEpoch)
	db, err := store.Open(ctx, x.d.URL, store.Options{MaxConns: 2})
	if err != nil {
		return err
	}
	defer db.Close()
	chain := repute.Chain{ID: crowdChain, Name: "crowd", Identity: common.BigToAddress(big.NewInt(1)),
		Reputation: common.BigToAddress(big.NewInt(2)), StartBlock: 1}
	if err := chaindb.AddChain(ctx, db, chain); err != nil {
		return err
	}
	const party = "decode(lpad(to_hex((1::bigint << 40) + %s), 40, '0'), 'hex')"
	statements := []string{
		`insert into tags (hash, value) values (@starred, 'starred'), (@empty, '')`,
		`insert into uris (hash, uri, kind, host) values (@empty, '', 'empty', '')`,
		`insert into blocks (chain_id, number, hash, parent, time)
			select @chain, n, decode(lpad(to_hex(n), 64, '0'), 'hex'), '', now() - (@last + 1000 - n) * interval '1 second'
			from generate_series(1::bigint, @last + 1000) n`,
		`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
			updated_block, updated_log)
			select @chain, i, ` + fmt.Sprintf(party, "i") + `, false, '', '', (select max(id) from uris), 1, i, @last, i
			from generate_series(0::bigint, @ratings / 10) i`,
		`insert into agent_states (chain_id, token_id, from_block, owner, claimed, wallet, approved, uri_id)
			select @chain, token_id, 1, owner, false, '', '', uri_id from agents`,
		`insert into events (chain_id, block, log_index, tx_index, kind, address, tx_hash, token_id, topics, data)
			select @chain, 1, registered_log, 0, ` + strconv.Itoa(int(repute.KindTransfer)) + `, '', '', token_id,
				decode(repeat('00', 76), 'hex') || owner || decode(lpad(to_hex(token_id::bigint), 64, '0'), 'hex'), '' from agents`,
		`alter table feedback drop constraint feedback_pkey`, // indexes that are made of stored rows are made faster
		`insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
			select distinct on (g.token, g.client) @chain, g.token, ` + fmt.Sprintf(party, "g.client") + `, 1, 1 + i % @last,
				i / @last, case when i % 10 = 0 then 25 else 95 end, 0, (select min(id) from tags), (select max(id) from tags),
				(select max(id) from uris), '', ''
			from (select i, floor(power(random(), 2) * (@ratings / 10))::bigint as token,
				floor(random() * (@ratings / 10))::bigint as client from generate_series(0::bigint, @ratings::bigint - @large::bigint - 1) i) g`,
		`insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
			endpoint, hash)
			select @chain, @ratings / 10, ` + fmt.Sprintf(party, "i") + `, 1, 1 + i % @last, 1000000 + i / @last, 90, 0,
				(select min(id) from tags), (select max(id) from tags), (select max(id) from uris), '', ''
			from generate_series(0::bigint, @large::bigint - 1) i`,
		`alter table feedback add primary key (chain_id, token_id, client, idx)`,
		`update agents a set feedback = n from (select token_id, count(*) n from feedback group by 1) f
			where f.token_id = a.token_id`,
		`insert into trust_roots (chain_id, set_name, address, weight, reason)
			select @chain, 'default', owner, 1000000, 'bench' from agents where token_id % 100 = 0`,
	}
	starred, empty := column.Keccak("starred"), column.Keccak("")
	args := pgx.NamedArgs{"chain": int64(crowdChain), "last": x.last, "ratings": int64(x.ratings),
		"large":   int64(x.large),
		"starred": starred[:], "empty": empty[:]}
	// In this order: indexes away, rows, indexes, and the statistics that the planner needs before the product starts.
	indexes, err := x.dropIndexes(ctx)
	if err != nil {
		return err
	}
	for _, sql := range statements {
		if _, err := x.d.Exec(ctx, sql, args); err != nil {
			return fmt.Errorf("%.40s: %w", sql, err)
		}
	}
	for _, sql := range append(indexes, "vacuum analyze", "checkpoint") {
		if _, err := x.d.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// dropIndexes drops the indexes of ratings, but for the primary key, and returns the statements that make them again.
// An index is made of stored rows in less time than it grows with them. The settings of
// memory are of this session alone.
func (x *crowdChainBench) dropIndexes(ctx context.Context) ([]string, error) {
	if _, err := x.d.Exec(ctx, "set maintenance_work_mem = '512MB'; set work_mem = '512MB'"); err != nil {
		return nil, fmt.Errorf("memory for indexes: %w", err)
	}
	rows, err := x.d.Query(ctx, `select indexname, indexdef from pg_indexes
		where tablename = 'feedback' and indexname <> 'feedback_pkey'`)
	if err != nil {
		return nil, fmt.Errorf("indexes of ratings: %w", err)
	}
	var drop, again []string
	var name, definition string
	_, err = pgx.ForEachRow(rows, []any{&name, &definition}, func() error {
		drop, again = append(drop, "drop index "+name), append(again, definition)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("indexes of ratings: %w", err)
	}
	_, err = x.d.Exec(ctx, strings.Join(drop, "; "))
	return again, err
}

// measure runs the product over the first epoch and the later ones. Processor time is read before the product ends,
// with whose sessions that of Postgres is gone.
func (x *crowdChainBench) measure(ctx context.Context) (m *TrustEpoch, err error) {
	ctx, cancel := context.WithTimeout(ctx, epochLimit)
	defer cancel()
	m = &TrustEpoch{Ratings: x.ratings, Agents: x.ratings/10 + 1, New: x.ratings / 1000, Large: x.large}
	p, err := x.program.Serve(fmt.Sprintf("database: %q\nroles: [trust]\n", x.d.URL))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	if m.First, err = x.next(ctx, p, x.last); err != nil {
		return nil, err
	}
	for n := range laterEpochs {
		if err := x.rate(ctx, m.New, n); err != nil {
			return nil, err
		}
		took, err := x.next(ctx, p, x.last)
		if err != nil {
			return nil, err
		}
		m.Later = append(m.Later, took)
		if err := x.events(ctx, p, m, n); err != nil {
			return nil, err
		}
	}
	used, err := x.d.CPU(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.Stop(); err != nil {
		return nil, err
	}
	m.CPU, m.PgCPU, m.PeakMB, m.LoadMean = p.CPU().Seconds(), used.Seconds(), p.PeakMB, harness.Host().Load
	return m, nil
}

// events measures a rating of a usual agent and one of the agent with most ratings, just after the n-th later epoch.
func (x *crowdChainBench) events(ctx context.Context, p *harness.Process, m *TrustEpoch, n int) error {
	for i, event := range []struct {
		token int
		into  *[]float64
	}{{x.ratings / 20, new([]float64)}, {x.ratings / 30, &m.Events},
		{x.ratings / 10, &m.LargeEvents}} { // the first prepares statements
		took, err := x.event(ctx, p, event.token, 10*n+i)
		if err != nil {
			return fmt.Errorf("rating of agent %d after epoch %d: %w", event.token, n, err)
		}
		*event.into = append(*event.into, took)
	}
	return nil
}

// event stores a rating of an agent in the n-th block after the last epoch, n below crowdEpoch in all, and returns the
// milliseconds until the agent's score is of that block.
func (x *crowdChainBench) event(ctx context.Context, p *harness.Process,
	token, n int) (milliseconds float64, err error) {
	block := x.last + 1 + int64(n%10)
	args := pgx.NamedArgs{"chain": int64(crowdChain), "block": block, "token": int64(token), "idx": int64(1000 + n)}
	// One statement is one transaction. The time is the server's own, shortly before it commits, and is compared with the
	// server's own below, so that the clocks of two machines play no part.
	var began time.Time
	err = x.d.QueryRow(ctx, `
		with rated as (
			insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
				endpoint, hash)
			select @chain, f.token_id, f.client, @idx, @block, 2000000, 90, 0, f.tag1, f.tag2, f.uri_id, '', ''
			from (select * from feedback where chain_id = @chain and token_id = @token and idx = 1 order by client limit 1) f),
		counted as (
			update agents set feedback = feedback + 1, updated_block = @block where (chain_id, token_id) = (@chain, @token)),
		marked as (insert into trust_marks (chain_id, token_id) values (@chain, @token))
		update chains set cursor_block = @block where chain_id = @chain returning clock_timestamp()`, args).Scan(&began)
	if err != nil {
		return 0, err
	}
	var seen time.Time
	err = p.Await(ctx, time.Millisecond, func(ctx context.Context) (scored bool, err error) {
		err = x.d.QueryRow(ctx, `select coalesce(max(block), 0) = $3, clock_timestamp() from trust_scores
			where (chain_id, token_id) = ($1, $2)`, int64(crowdChain), int64(token), block).Scan(&scored, &seen)
		return scored, err
	})
	return harness.Millis(seen.Sub(began)), err
}

// rate stores the ratings of the n-th later epoch and sets x.last to its end.
func (x *crowdChainBench) rate(ctx context.Context, ratings, n int) error {
	args := pgx.NamedArgs{"chain": int64(crowdChain), "last": x.last, "ratings": int64(ratings),
		"agents": int64(x.ratings / 10), "idx": n + 2}
	_, err := x.d.Exec(ctx, `
		with rated as (
			insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id,
				endpoint, hash)
			select @chain, f.token_id, f.client, @idx, @last + 1 + i % 20, i, 90, 0, f.tag1, f.tag2, f.uri_id, '', ''
			from generate_series(0::bigint, @ratings - 1) i cross join lateral (
				select * from feedback where chain_id = @chain and token_id = (i * 7919 + @last) % @agents and idx = 1 limit 1) f
			on conflict do nothing returning token_id)
		update agents a set feedback = feedback + n, updated_block = @last + 20
		from (select token_id, count(*) n from rated group by 1) r where (a.chain_id, a.token_id) = (@chain, r.token_id)`,
		args)
	x.last += crowdEpoch
	if err != nil {
		return fmt.Errorf("ratings of epoch %d: %w", n, err)
	}
	return nil
}

// next makes a block final that ends an epoch, and returns how many seconds it took until the epoch's scores were
// visible.
func (x *crowdChainBench) next(ctx context.Context, p *harness.Process, block int64) (seconds float64, err error) {
	var began time.Time
	err = x.d.QueryRow(ctx, `
		update chains set cursor_block = $2, finalized_block = $2 where chain_id = $1 returning clock_timestamp()`,
		int64(crowdChain), block).Scan(&began)
	if err != nil {
		return 0, fmt.Errorf("end of an epoch: %w", err)
	}
	var closed *time.Time
	err = p.Await(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		err := x.d.QueryRow(ctx, `select max(closed_at) from trust_runs where chain_id = $1 and boundary = $2`,
			int64(crowdChain), block).Scan(&closed)
		return closed != nil, err
	})
	if err != nil {
		return 0, err
	}
	return closed.Sub(began).Seconds(), nil
}
