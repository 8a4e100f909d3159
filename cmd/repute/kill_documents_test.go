package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/jackc/pgx/v5"

	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

const (
	killHosts   = 4
	killEach    = 50 // documents of one host
	killWritten = 100
	// killWorkers is how many documents of one host may be under way at a kill: each of
	// two workers has one that is fetched and one that is stored.
	killWorkers = 4
)

// killFarm serves the documents of some hosts and counts what it is asked for.
func killFarm(t *testing.T) (uris []string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	for host := range killHosts {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			time.Sleep(10 * time.Millisecond) // so that a kill finds work under way
			fmt.Fprintf(w, `{"name":"%d%s"}`, host, r.URL.Path)
		}))
		t.Cleanup(s.Close)
		for i := range killEach {
			uris = append(uris, fmt.Sprintf("%s/%d", s.URL, i))
		}
	}
	for i := range killWritten {
		uris = append(uris, fmt.Sprintf(`data:application/json,{"name":"written %d"}`, i))
	}
	return uris, asked
}

// registered is a chain on which every URI is an agent's.
func registered(t *testing.T, uris []string) *rpctest.Chain {
	t.Helper()
	c := rpctest.New(t, rpctest.Options{})
	var txs [][]types.Log
	for i, uri := range uris {
		txs = append(txs, c.Register(uint64(i), rpctest.Account(1), uri))
	}
	c.Mine(txs...)
	return c
}

// away makes a database what it is an hour after its process was killed: the claims of the process are over.
func away(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, sql := range []string{
		"update hosts set due_at = least(due_at, now()), claimed_until = claimed_until - interval '1 hour'",
		"update uris set next_due = least(next_due, now()) where tried_at is null and next_due is not null",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// configureDocuments is configure for documents as well, which this machine has.
func configureDocuments(t *testing.T, c *rpctest.Chain, database string) string {
	t.Helper()
	path := configure(t, c, database)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(text), "roles: [indexer]",
		"roles: [indexer, documents]\nallow_hosts: [127.0.0.1]", 1)
	if err := os.WriteFile(path, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Kills at any moment of reading documents lose none, and none is told of twice.
func TestKillDuringDocuments(t *testing.T) {
	const kills = 5
	uris, asked := killFarm(t)
	chain := registered(t, uris)
	database := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	count := func(sql string) (n int64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	config := configureDocuments(t, chain, database)
	wait := func(what string, out fmt.Stringer, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(60 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never %s; the program says:\n%.2000s", what, out)
			}
		}
	}
	// A document that is read before its agent is stored is told of with the agent.
	cmd, out := child(t, "serve", "--config", configure(t, chain, database))
	wait("indexed", out, func() bool {
		return count("select count(*) from pg_tables where tablename = 'agents'") > 0 &&
			count("select count(*) from agents") == int64(len(uris))
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for kill := range int64(kills) {
		cmd, out := child(t, "serve", "--config", config)
		wait("far enough", out, func() bool { return asked.Load() >= killHosts*killEach*(kill+1)/(kills+1) })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		away(t, conn)
	}
	if read := count("select count(*) from uris where sha256 is not null"); read == 0 || read >= int64(len(uris)) {
		t.Fatalf("the last kill found %d of %d documents read: not in the middle", read, len(uris))
	}
	_, out = child(t, "serve", "--config", config)
	wait("all read", out,
		func() bool { return count("select count(*) from uris where sha256 is not null") == int64(len(uris)) })
	if got := asked.Load(); got > killHosts*(killEach+kills*killWorkers) {
		t.Errorf("%d requests for %d documents and %d kills", got, killHosts*killEach, kills)
	}
	for what, sql := range map[string]string{
		"agents told of":        "select count(distinct token_id) from changes where kind = 'document.updated'",
		"changes":               "select count(*) from changes where kind = 'document.updated'",
		"outcomes":              "select count(*) from fetches",
		"documents with bytes":  "select count(*) from documents where body is not null",
		"documents with a name": "select count(distinct content->>'name') from parses where kind = 'registration'",
	} {
		if got := count(sql); got != int64(len(uris)) {
			t.Errorf("%d %s, want %d", got, what, len(uris))
		}
	}
}

// What waits for no stranger goes on at once after a kill: nothing has to find out first
// that the process died. Only what it had claimed waits for its claims.
func TestKillHoldsUpNoOwnQueue(t *testing.T) {
	const written, claimed = 1500, 2 * 50 // two workers with a portion each
	var uris []string
	for i := range written {
		uris = append(uris, fmt.Sprintf(`data:application/json,{"name":"written %d"}`, i))
	}
	chain := registered(t, uris)
	database := pgtest.New(t)
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	count := func(sql string) (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const read = "select count(*) from uris where sha256 is not null"
	config := configureDocuments(t, chain, database)
	wait := func(what string, out fmt.Stringer, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(90 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never %s; the program says:\n%.2000s", what, out)
			}
		}
	}
	cmd, out := child(t, "serve", "--config", config)
	started := func() bool { return count("select count(*) from pg_tables where tablename = 'uris'") > 0 }
	wait("begun", out, func() bool { return started() && count(read) > 0 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if count(read) >= written-claimed {
		t.Fatalf("the kill found %d of %d documents read: not in the middle", count(read), written)
	}
	_, out = child(t, "serve", "--config", config)
	wait("read what was not claimed", out, func() bool { return count(read) >= written-claimed })
}
