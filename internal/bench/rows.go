package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"repute/internal/bench/harness"
)

// rows is the final content of an index, as binary COPY sends it, with the place
// of every row, so that the same rows can be stored again in as many transactions
// as the index took.
type rows struct {
	dir    string
	tables []tableRows
}

// tableRows are one table's rows in the order in which they lie in the table:
// that in which they came, except that a row replaced lies where its newest form
// was written.
type tableRows struct {
	name    string
	columns string  // quoted and separated by commas, without generated ones, which COPY cannot write
	at      []int64 // where every row begins in the file, and the end of the last
}

// count is how many rows the table has. It needs places: at has one more entry than there are rows.
func (t *tableRows) count() int { return len(t.at) - 1 }

// capture writes all of a database's rows to files under a new temporary
// directory, which remove deletes.
func capture(ctx context.Context, d *harness.Database) (r *rows, err error) {
	dir, err := os.MkdirTemp("", "bench-rows-")
	if err != nil {
		return nil, fmt.Errorf("capture rows: %w", err)
	}
	r = &rows{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("capture rows: %w", err), r.remove())
		}
	}()
	if r.tables, err = listTables(ctx, d); err != nil {
		return nil, err
	}
	for i := range r.tables {
		if err := r.tables[i].capture(ctx, d, r.file(&r.tables[i])); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// file is the path of a table's rows.
func (r *rows) file(t *tableRows) string { return filepath.Join(r.dir, t.name) }

// remove deletes the files. The rows are of no use afterwards.
func (r *rows) remove() error { return os.RemoveAll(r.dir) }

// count is how many rows there are in all tables.
func (r *rows) count() (n int) {
	for i := range r.tables {
		n += r.tables[i].count()
	}
	return n
}

// listTables lists what the index consists of: chains first, for other tables
// refer to them, without what the migrations and the job queue keep, and without the totals that
// triggers write.
func listTables(ctx context.Context, d *harness.Database) ([]tableRows, error) {
	found, err := d.Query(ctx, `
		select c.relname, string_agg(quote_ident(a.attname), ', ' order by a.attnum)
		from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
			and c.relname !~ '^(river_|goose_)' and c.relname not in ('agent_sums', 'agent_votes')
		group by 1 order by c.relname <> 'chains', 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (t tableRows, err error) {
		err = row.Scan(&t.name, &t.columns)
		return t, err
	})
}

// Binary COPY: a header, rows, and a trailer where a row's number of fields would
// be. The header is the signature of 11 bytes, flags and the length of an extension,
// both 0; other flags or an extension would move the rows, and Postgres writes neither.
var (
	copyHeader  = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	copyTrailer = []byte{0xff, 0xff}
)

// capture copies a table to a file and finds its rows there.
func (t *tableRows) capture(ctx context.Context, d *harness.Database, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	if _, err := d.PgConn().CopyTo(ctx, w, "copy "+t.name+" ("+t.columns+") to stdout binary"); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	t.at, err = places(bufio.NewReaderSize(f, 1<<20))
	return err
}

// places finds where the rows of a binary COPY are. The error is io.ErrUnexpectedEOF or io.EOF where the trailer is
// missing.
func places(r *bufio.Reader) ([]int64, error) {
	at := int64(len(copyHeader))
	if _, err := r.Discard(len(copyHeader)); err != nil {
		return nil, err
	}
	list := []int64{at}
	for {
		n, err := readRow(r)
		if err != nil || n == 0 {
			return list, err
		}
		at += n
		list = append(list, at)
	}
}

// readRow skips one row and returns its length, 0 at the end.
func readRow(r *bufio.Reader) (length int64, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:2]); err != nil {
		return 0, err
	}
	if bytes.Equal(head[:2], copyTrailer) {
		return 0, nil
	}
	length = 2
	for range binary.BigEndian.Uint16(head[:2]) {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return 0, err
		}
		n := max(0, int(int32(binary.BigEndian.Uint32(head[:])))) // -1 is null
		if _, err := r.Discard(n); err != nil {
			return 0, err
		}
		length += int64(4 + n)
	}
	return length, nil
}

// storeAll stores the rows through one connection in the given number of
// transactions, each with its share of every table, and returns how long it took.
// Triggers and indexes are those of the product, so that the totals that triggers write
// are made again.
func (r *rows) storeAll(ctx context.Context, d *harness.Database, transactions int) (time.Duration, error) {
	for i := range r.tables { // the few rows that the migrations leave
		if _, err := d.Exec(ctx, "delete from "+r.tables[i].name); err != nil {
			return 0, fmt.Errorf("store rows: %w", err)
		}
	}
	return r.store(ctx, d, transactions, r.tables, func(t *tableRows) string { return t.name })
}

// storeRaw stores the events alone into a table of the same columns with the
// primary key as its only index. The rows MUST have been captured from an index, which
// always has the table events.
func (r *rows) storeRaw(ctx context.Context, d *harness.Database, transactions int) (time.Duration, error) {
	const raw = "raw_events"
	_, err := d.Exec(ctx,
		"create table "+raw+" (like events); alter table "+raw+" add primary key (chain_id, block, log_index)")
	if err != nil {
		return 0, fmt.Errorf("raw table: %w", err)
	}
	i := slices.IndexFunc(r.tables, func(t tableRows) bool { return t.name == "events" })
	return r.store(ctx, d, transactions, r.tables[i:i+1], func(*tableRows) string { return raw })
}

// store copies the rows into tables of these names, the n-th part of each table in the n-th transaction. The time is
// from the first transaction to the last commit, without opening files.
func (r *rows) store(ctx context.Context, d *harness.Database, transactions int, tables []tableRows,
	name func(*tableRows) string) (time.Duration, error) {
	files := make([]*os.File, len(tables))
	for i := range tables {
		f, err := os.Open(r.file(&tables[i]))
		if err != nil {
			return 0, fmt.Errorf("store rows: %w", err)
		}
		defer f.Close()
		files[i] = f
	}
	start := time.Now()
	for n := range transactions {
		err := pgx.BeginFunc(ctx, d, func(tx pgx.Tx) error {
			for i := range tables {
				t := &tables[i]
				// The parts together have every row once, also where there are fewer rows than transactions.
				from, to := t.at[t.count()*n/transactions], t.at[t.count()*(n+1)/transactions]
				if err := storeRun(ctx, tx, files[i], from, to, name(t), t.columns); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("store rows: %w", err)
		}
	}
	return time.Since(start), nil
}

// storeRun copies the rows between two places of a file. A COPY of no rows is left out.
func storeRun(ctx context.Context, tx pgx.Tx, f *os.File, from, to int64, table, columns string) error {
	if from == to {
		return nil
	}
	run := io.MultiReader(bytes.NewReader(copyHeader), io.NewSectionReader(f, from, to-from),
		bytes.NewReader(copyTrailer))
	sql := strings.Join([]string{"copy", table, "(" + columns + ")", "from stdin binary"}, " ")
	if _, err := tx.Conn().PgConn().CopyFrom(ctx, run, sql); err != nil {
		return fmt.Errorf("%s: %w", table, err)
	}
	return nil
}
