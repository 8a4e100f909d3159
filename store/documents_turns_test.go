package store_test

import (
	"slices"
	"testing"
	"time"

	"repute/store"
)

// hostOf puts the https URIs of a test on one host.
func hostOf(t *testing.T, db *store.DB, host string) {
	t.Helper()
	sqlExec(t, db, "update uris set host = $1 where kind = 'https'", host)
	sqlExec(t, db, "delete from hosts where host in ('', $1)", host)
	sqlExec(t, db, "insert into hosts (host, turn) values ($1, now())", host)
}

// Any number of hosts with files of ratings wait apart from one with a new agent.
func TestHostsOfAgentsComeFirst(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, rank, next_due)
		select sha256(h::bytea), h::bytea, 'https', h, r, now() - interval '1 minute'
		from generate_series(1, 2000) i, lateral (select case when i > 1000 then 3 else 1 end) v(r), lateral (select 'h' || i || '.example') w(h)`)
	sqlExec(t, db, "insert into uris (hash, uri, kind, host, rank, next_due) values (sha256('n'), 'n', 'https', 'new.example', 0, now())")
	ok(t, db.RestoreHosts(ctx))
	hosts, err := db.DueHosts(ctx, 100)
	if err != nil || len(hosts) != 101 || hosts[0] != "new.example" {
		t.Errorf("%d hosts, first %q, %v", len(hosts), hosts[:1], err)
	}
	files, err := db.DueFileHosts(ctx, 2000, "h1001.example")
	if err != nil || len(files) != 999 || slices.Contains(files, "h1000.example") {
		t.Errorf("%d hosts of files, %v", len(files), err)
	}
	// What was read of the new agent leaves its host with its files.
	sqlExec(t, db, "update uris set next_due = now() + interval '1 day' where rank = 0")
	sqlExec(t, db, `insert into uris (hash, uri, kind, host, rank, next_due) values (sha256('f'), 'f', 'https', 'new.example', 3, now())`)
	ok(t, db.FinishHost(ctx, "new.example"))
	if files, err := db.DueFileHosts(ctx, 2000); err != nil || !slices.Contains(files, "new.example") {
		t.Errorf("%d hosts of files, %v", len(files), err)
	}
}

// What a host asked for stands against wishes, new documents and a new start; its
// silence stands for minutes.
func TestRestOutlastsWishes(t *testing.T) {
	t.Parallel()
	const url, host = "https://busy.example/0", "busy.example"
	for name, c := range map[string]struct {
		asked time.Duration
		rests string // longer than, and not as long as
		until string
	}{"asked": {24 * time.Hour, "23 hours", "25 hours"}, "silent": {0, "4 minutes", "6 minutes"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, w := queue(t, url)
			ctx := ctxOf(t)
			hostOf(t, db, host)
			u := claim(t, db, host)[url]
			save(t, db, store.FetchResult{URIID: u.ID, FetchedAt: time.Now(), Reason: "http_status", NextDue: time.Now().Add(24 * time.Hour)})
			ok(t, db.PostponeHost(ctx, host, c.asked, time.Hour, time.Hour))
			r, err := db.RequestRefresh(ctx, w.id(0))
			if err != nil || !r.Queued {
				t.Errorf("refresh %+v, %v", r, err)
			}
			_, err = db.RetryDocuments(ctx, store.RetryFilter{})
			ok(t, err)
			ok(t, db.RestoreHosts(ctx))
			if hosts, err := db.DueHosts(ctx, 10); err != nil || len(hosts) != 0 {
				t.Errorf("due while it rests: %q, %v", hosts, err)
			}
			var within bool
			ok(t, db.Pool().QueryRow(ctx, "select turn between now() + $1::text::interval and now() + $2::text::interval from hosts",
				c.rests, c.until).Scan(&within))
			if !within {
				t.Errorf("the turn is not between %s and %s from now", c.rests, c.until)
			}
		})
	}
}
