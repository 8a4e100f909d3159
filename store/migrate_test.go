package store_test

import (
	"database/sql"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver that the migrations run on
	"github.com/pressly/goose/v3"

	"repute"
	"repute/internal/pgtest"
	"repute/migrations"
	"repute/store"
)

// The migration down to a version that cannot hold undecoded logs takes back what
// was claimed of their blocks.
func TestMigrationDownUncoversUndecoded(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	ok(t, store.Migrate(t.Context(), url))
	db, w := openDB(t, url), newWorld(7, 100, 52)
	w.grow(20)
	w.store(t, db, 119)
	proveTo(t, db, 7, w.chain.StartBlock, 119)
	sqlExec(t, db, "insert into pending values (7, 105, 0, null, 'legacy_event'), (7, 110, 0, null, 'malformed_event'), (7, 111, 0, null, 'malformed_event')")
	std, err := sql.Open("pgx", url)
	ok(t, err)
	t.Cleanup(func() { _ = std.Close() })
	p, err := goose.NewProvider(goose.DialectPostgres, std, migrations.FS)
	ok(t, err)
	_, err = p.DownTo(t.Context(), 4)
	ok(t, err)
	_, err = p.Up(t.Context())
	ok(t, err)
	proveTo(t, db, 7, w.chain.StartBlock, 119)
	c := chainsOf(t, db)[0].Completeness
	want := []repute.BlockRange{{From: 100, To: 104}, {From: 106, To: 109}, {From: 112, To: 119}}
	if c.Status != repute.Partial || len(c.Ranges) != len(want) || c.Ranges[0] != want[0] || c.Ranges[1] != want[1] || c.Ranges[2] != want[2] {
		t.Errorf("%s, %v, want %v", c.Status, c.Ranges, want)
	}
}

// One queue per host: what was queued under other spellings is moved there, and documents
// over ipfs whose root nobody noted are read once more.
func TestMigrationJoinsSpellings(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	std, err := sql.Open("pgx", url)
	ok(t, err)
	t.Cleanup(func() { _ = std.Close() })
	p, err := goose.NewProvider(goose.DialectPostgres, std, migrations.FS)
	ok(t, err)
	_, err = p.UpTo(t.Context(), 13)
	ok(t, err)
	_, err = std.ExecContext(t.Context(), `
		insert into uris (hash, uri, kind, host, rank, next_due) select sha256(convert_to(h, 'UTF8')), convert_to(h, 'UTF8'), 'https', h, 0, now()
		from unnest(array['a.example.', 'b.example:443', 'c.example.:443', 'd.example.:8443', 'e.example', 'f443.example']) h;
		insert into documents (sha256, body, media_type, first_seen) values (sha256('s'), 'x', '', now());
		insert into uris (hash, uri, kind, host, rank, source, sha256) values (sha256('i'), 'ipfs://x', 'ipfs', 'ipfs', 1, 'ipfs', sha256('s'))`)
	ok(t, err)
	for range 2 {
		_, err = p.Up(t.Context())
		ok(t, err)
		var hosts string
		ok(t, std.QueryRowContext(t.Context(), "select string_agg(host, ' ' order by host) from hosts").Scan(&hosts))
		if want := "a.example b.example c.example d.example:8443 e.example f443.example ipfs"; hosts != want {
			t.Errorf("hosts with a turn: %s, want %s", hosts, want)
		}
		_, err = p.DownTo(t.Context(), 13)
		ok(t, err)
	}
}
