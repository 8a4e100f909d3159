// Package exportbench compares exports with Postgres's own COPY of the same rows.
//
// Run stores ratings in a private Postgres and reads them in four ways, in turns: COPY of the table as it is, COPY of
// the rows that the export has, with the same joins, and the export over HTTP as NDJSON and as Parquet, from a server
// in this process. The best of three counts. A target is a share of the second COPY, which does the same work but for
// the encoding.
package exportbench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"repute/api/export"
	"repute/internal/bench/harness"
	"repute/internal/httpapi"
	"repute/store"
)

// leastShare is how fast the export must be, in rows per second, as a share of COPY. What is left is for the encoding,
// compression and HTTP.
const leastShare = 0.6

// chain is the id of the chain that has all ratings. It is imported, so that nothing follows it.
const chain = 1

// Options of the benchmark.
type Options struct {
	Ratings  int       // that are stored and exported, at least 5: the URIs are a fifth of them
	Progress io.Writer // lines for a person; nil for none
}

// Measurements are rows per second.
type Measurements struct {
	// CopyTable is COPY of the table of ratings as it is stored; CopyRows that of the rows of the export, with their
	// texts, transactions and times, which takes the same joins.
	CopyTable float64 `json:"copy_table_rows_per_second"`
	CopyRows  float64 `json:"copy_rows_per_second"`
	NDJSON    float64 `json:"ndjson_rows_per_second"`
	Parquet   float64 `json:"parquet_rows_per_second"`
	// Bytes of the files.
	NDJSONBytes  int64 `json:"ndjson_bytes"`
	ParquetBytes int64 `json:"parquet_bytes"`
}

// Run measures on a private Postgres. The rows are counted in the table, because a generated client may rate an agent
// twice by the same index and is stored once.
func Run(ctx context.Context, o Options) (harness.Report, error) {
	say := harness.Progress{To: o.Progress}
	r := harness.Report{Name: "export", Config: map[string]any{"ratings": o.Ratings, "set": "feedback"}}
	return harness.OnServer(ctx, say, r, false, func(s *harness.Server) (any, []harness.Target, error) {
		d, err := s.Fresh(ctx)
		if err != nil {
			return nil, nil, err
		}
		say.Say("%d ratings", o.Ratings)
		if err := fill(ctx, d, o.Ratings); err != nil {
			return nil, nil, err
		}
		m, err := measure(ctx, d)
		return m, m.targets(), err
	})
}

// targets are what the measurements must reach.
func (m Measurements) targets() []harness.Target {
	return []harness.Target{
		harness.AtLeast("NDJSON export against COPY of its rows", m.NDJSON/m.CopyRows, leastShare, "of COPY TO"),
		harness.AtLeast("Parquet export against COPY of its rows", m.Parquet/m.CopyRows, leastShare, "of COPY TO"),
	}
}

// fill stores ratings of a tenth as many agents, with their events and blocks.
func fill(ctx context.Context, d *harness.Database, n int) error {
	for _, sql := range []string{
		`insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block, cursor_hash, covered)
			select $1::bigint, 'bench', decode(repeat('01', 20), 'hex'), decode(repeat('02', 20), 'hex'), '{}', 1, true, 1 + $2::int / 100, '', '{}'`,
		`insert into blocks (chain_id, number, hash, parent, time) select $1::bigint, b, sha256(b::text::bytea), '', to_timestamp(1750000000 + b)
			from generate_series(1, 1 + $2::int / 100) b`,
		`insert into tags (hash, value) select sha256(t::text::bytea), ('tag' || t)::bytea from generate_series(1, 50) t where $1::bigint > 0 and $2::int > 0`,
		`insert into uris (hash, uri, kind, host) select sha256(u::text::bytea), ('ipfs://bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52' || u)::bytea,
			'ipfs', '' from generate_series(1, $2::int / 5) u where $1::bigint > 0`,
		`insert into events (chain_id, block, log_index, tx_index, kind, address, tx_hash, topics, data)
			select $1::bigint, 1 + i / 100, i % 100, i % 100, 9, decode(repeat('02', 20), 'hex'), sha256(i::text::bytea), '', '' from generate_series(0, $2::int - 1) i`,
		`insert into feedback (chain_id, token_id, client, idx, block, log_index, value, decimals, tag1, tag2, uri_id, endpoint, hash)
			select $1::bigint, i % greatest($2::int / 10, 1), substring(sha256((i % 9973)::text::bytea) for 20), 1 + i / 100000, 1 + i / 100, i % 100, i % 101, 0,
				(select min(id) from tags) + i % 50, (select min(id) from tags) + i % 7, (select min(id) from uris) + i % ($2::int / 5),
				'https://agent.example/mcp', sha256(i::text::bytea)
			from generate_series(0, $2::int - 1) i on conflict do nothing`,
	} {
		if _, err := d.Exec(ctx, sql, chain, n); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	_, err := d.Exec(ctx, "vacuum analyze")
	return err
}

// copied is the statement of the export's rows, without its bounds.
const copied = `select f.chain_id, f.token_id, '0x' || encode(f.client, 'hex'), f.idx, f.value, f.decimals, t1.value, t2.value,
	f.endpoint, u.uri, f.hash, f.block, f.log_index, e.tx_hash, b.time, f.revoked_block, f.revoked_log
	from feedback f join tags t1 on t1.id = f.tag1 join tags t2 on t2.id = f.tag2 join uris u on u.id = f.uri_id
	left join events e on (e.chain_id, e.block, e.log_index) = (f.chain_id, f.block, f.log_index)
	left join blocks b on (b.chain_id, b.number) = (f.chain_id, f.block) order by f.chain_id, f.token_id, f.client, f.idx`

// measure takes the best of three of each, in turns. The best counts because all four read the same rows, which are in
// memory from the second turn on.
func measure(ctx context.Context, d *harness.Database) (m Measurements, err error) {
	db, err := store.Open(ctx, d.URL, store.Options{})
	if err != nil {
		return m, err
	}
	defer db.Close()
	base, stop, err := serve(db)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var rows int64
	if err := d.QueryRow(ctx, "select count(*) from feedback").Scan(&rows); err != nil {
		return m, err
	}
	for range 3 {
		for _, one := range []struct {
			best *float64
			size *int64
			run  func() (int64, error)
		}{
			{&m.CopyTable, nil, func() (int64, error) { return copyOut(ctx, d, "copy feedback to stdout") }},
			{&m.CopyRows, nil, func() (int64, error) { return copyOut(ctx, d, "copy ("+copied+") to stdout") }},
			{&m.NDJSON, &m.NDJSONBytes, func() (int64, error) { return fetch(ctx, base, export.NDJSON) }},
			{&m.Parquet, &m.ParquetBytes, func() (int64, error) { return fetch(ctx, base, export.Parquet) }},
		} {
			began := time.Now()
			size, err := one.run()
			if err != nil {
				return m, err
			}
			*one.best = max(*one.best, float64(rows)/time.Since(began).Seconds())
			if one.size != nil {
				*one.size = size
			}
		}
	}
	return m, nil
}

// copyOut runs a COPY and drops what it sends. It returns no size: that of a text of COPY compares with nothing.
func copyOut(ctx context.Context, d *harness.Database, sql string) (int64, error) {
	_, err := d.PgConn().CopyTo(ctx, io.Discard, sql)
	return 0, err
}

// serve serves the exports of a database until stop is called.
func serve(db *store.DB) (base string, stop func() error, err error) {
	server, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	export.Mount(server, db)
	h, err := server.Handler()
	if err != nil {
		return "", nil, err
	}
	return harness.Serve(h)
}

// fetch downloads the whole set and drops it. The size is that of the body in bytes.
func fetch(ctx context.Context, base, format string) (size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/export/feedback?chainId=%d&format=%s", base, chain, format), nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if size, err = io.Copy(io.Discard, res.Body); err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("the export answers with status %d", res.StatusCode)
	}
	return size, err
}
