package pgtest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute/internal/pgtest"
)

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const tables = "select count(*) from pg_tables where schemaname = 'public'"

func TestDatabasesAreMigratedAndApart(t *testing.T) {
	t.Parallel()
	one, two := pgtest.New(t), pgtest.New(t)
	if one == two {
		t.Fatal("two tests share a database")
	}
	insert := "insert into tags (hash, value) values (decode(repeat('00', 32), 'hex'), '') returning id::int"
	if got := count(t, one, insert); got != 1 {
		t.Errorf("first tag = %d", got)
	}
	if got := count(t, two, "select count(*) from tags"); got != 0 {
		t.Errorf("a tag of the other database shows: %d", got)
	}
	if got := count(t, pgtest.Unmigrated(t), tables); got != 0 {
		t.Errorf("an unmigrated database has %d tables", got)
	}
}

func TestDatabaseIsDroppedAtTheEnd(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("inner", func(t *testing.T) {
		url = pgtest.New(t)
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn // left open on purpose
	})
	if conn, err := pgx.Connect(context.Background(), url); err == nil {
		conn.Close(context.Background())
		t.Error("the database is still there")
	}
}

// TestManyProcesses starts this binary several times at once against a server
// directory of its own, so that they race for starting the server and for
// making the template; one is killed on the way.
func TestManyProcesses(t *testing.T) {
	if os.Getenv("REPUTE_PGTEST_CHILD") != "" {
		t.Skip("is a child")
	}
	if os.Getenv("REPUTE_TEST_DATABASE_URL") != "" {
		t.Skip("a given server is not started here")
	}
	tmp, err := os.MkdirTemp("", "repute-pgtest-race-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=TestDatabasesAreMigratedAndApart", "-test.count=1", "-test.v")
		cmd.Env = append(os.Environ(), "REPUTE_PGTEST_CHILD=1", "TMPDIR="+tmp)
		return cmd
	}
	killed := run()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if out, err := run().CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	wg.Wait()
	stopServer(t, tmp)
}

// stopServer ends the server of a race test: nobody else knows its directory.
func stopServer(t *testing.T, tmp string) {
	t.Helper()
	pids, err := exec.Command("sh", "-c", "head -n 1 "+tmp+"/repute-pgtest-*/server/data/postmaster.pid").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-INT", strings.TrimSpace(string(pids))).Run(); err != nil {
		t.Fatal(err)
	}
}
