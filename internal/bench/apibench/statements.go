package apibench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"repute/api"
	"repute/internal/bench/harness"
	"repute/internal/httpapi"
	"repute/store"
)

// statements counts what a database is sent, by all connections of a pool: statements, and batches as one each, without
// those that begin and end transactions. It implements pgx.QueryTracer and pgx.BatchTracer.
type statements struct{ n atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(d.SQL)), " ")
	switch word { // what is left out does not wait for rows, and ";" and "--" ping the connection
	case "begin", "commit", "rollback", "set", ";", "--", "":
	default:
		s.n.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements pgx.BatchTracer.
func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	s.n.Add(1)
	return ctx
}

// TraceBatchQuery implements pgx.BatchTracer.
func (*statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// counter is the API of a database in this process, which counts the statements of its pages.
type counter struct {
	seen statements
	db   *store.DB
	base string
	stop func() error // nil before it serves
}

// countingServer serves a database until close. Its limits are off: a page is asked for more often than a caller may.
func countingServer(ctx context.Context, dbURL string) (c *counter, err error) {
	c = &counter{}
	if c.db, err = store.Open(ctx, dbURL, store.Options{Tracer: &c.seen}); err != nil {
		return nil, err
	}
	server, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler),
		Tokens: map[string]string{"bench": pageToken}})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	if _, err := api.New(api.Options{Server: server, DB: c.db}); err != nil {
		return nil, errors.Join(err, c.close())
	}
	h, err := server.Handler()
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	if c.base, c.stop, err = harness.Serve(h); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// close ends the server and the connections to the database. It may be called before the server serves.
func (c *counter) close() (err error) {
	if c.stop != nil {
		err = c.stop()
	}
	c.db.Close()
	return err
}

// view returns how many statements a page has. It is asked for twice: connections and types are known the second time.
// The page is asked for alone, so that no other request is counted. A page with another status than 200 is an error.
func (c *counter) view(ctx context.Context, path string) (n int, err error) {
	for range 2 {
		c.seen.n.Store(0)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
		if err != nil {
			return 0, err
		}
		r.Header.Set("Authorization", "Bearer "+pageToken)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return 0, errors.Join(err, res.Body.Close())
		}
		if err := res.Body.Close(); err != nil {
			return 0, err
		}
		if res.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("counting statements of %s: status %d", path, res.StatusCode)
		}
	}
	return int(c.seen.n.Load()), nil
}
