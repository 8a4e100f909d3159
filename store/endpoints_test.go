package store_test

import (
	"context"
	"testing"
	"time"

	"repute"
	"repute/store"
	"repute/store/chaindb"

	"github.com/jackc/pgx/v5"
)

func TestEndpoints(t *testing.T) {
	t.Parallel()
	db := open(t)
	ok := time.Now().UTC().Truncate(time.Microsecond)
	one := repute.Endpoint{ChainID: 7, Name: "a.example:8545", Kind: "http", Owner: "p1", State: repute.EndpointClosed,
		Latency: 12500 * time.Microsecond, ErrorRate: 0.25, Requests: 9, Failures: 2, RateLimit: 7.5, Concurrency: 4,
		Head:      1 << 40,
		LastError: "down\x00 \xff", LastOKAt: ok}
	two := repute.Endpoint{ChainID: 7, Name: "b.example", Kind: "ws", Owner: "p1", State: repute.EndpointExcluded,
		Concurrency: 1}
	other := one
	other.Owner = "p2"
	save := func(list ...repute.Endpoint) {
		t.Helper()
		if err := chaindb.SaveEndpoints(t.Context(), db, 7, list); err != nil {
			t.Fatal(err)
		}
	}
	names := func(chain uint64) (out []string) {
		t.Helper()
		list, err := readEndpoints(t.Context(), db, chain)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			if time.Since(e.UpdatedAt).Abs() > time.Minute {
				t.Errorf("%s updated at %s", e.Name, e.UpdatedAt)
			}
			out = append(out, e.Name+" of "+e.Owner)
		}
		return out
	}
	save(one, two)
	save(other)
	if got := names(7); len(got) != 3 || len(names(0)) != 3 || len(names(8)) != 0 {
		t.Errorf("stored %v", got)
	}
	list, err := readEndpoints(t.Context(), db, 7)
	if err != nil {
		t.Fatal(err)
	}
	got := list[0]
	got.UpdatedAt = time.Time{}
	want := one
	want.LastError = got.LastError // made storable
	if got != want || got.LastError == "" {
		t.Errorf("read %+v, want %+v", got, want)
	}
	save(two) // the first one is configured no more
	if got := names(7); len(got) != 2 || got[0] != "a.example:8545 of p2" || got[1] != "b.example of p1" {
		t.Errorf("after one vanished: %v", got)
	}
	age := func(interval string) (rows int) {
		t.Helper()
		if _, err := db.Pool().Exec(t.Context(),
			`update endpoints set updated_at = now() - $1::interval where owner = 'p2'`, interval); err != nil {
			t.Fatal(err)
		}
		save()
		save(two)
		if err := db.Pool().QueryRow(t.Context(), "select count(*) from endpoints").Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if rows, got := age("61 seconds"), names(7); rows != 2 || len(got) != 1 {
		t.Errorf("a minute after a process was killed: %d rows, shown %v", rows, got)
	}
	if rows := age("11 minutes"); rows != 1 {
		t.Errorf("long after a process was killed: %d rows", rows)
	}
	if err := chaindb.ForgetEndpoints(t.Context(), db, 7, "p1"); err != nil || len(names(7)) != 0 {
		t.Errorf("after a process ended: %v, %v", names(7), err)
	}
}

// readEndpoints reads the stored health of a chain's endpoints.
func readEndpoints(ctx context.Context, db *store.DB, chainID uint64) (out []repute.Endpoint, err error) {
	err = chaindb.View(ctx, db, "read endpoints", func(ctx context.Context, tx pgx.Tx) error {
		out, err = chaindb.ReadEndpoints(ctx, tx, chainID)
		return err
	})
	return out, err
}
