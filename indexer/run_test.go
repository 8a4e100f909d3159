package indexer

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"repute"
	"repute/indexer/node"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// A leader whose machine dies while it copies rows leaves a session that is not
// idle and holds the chain; a new process must not wait for it.
func TestDeadLeaderInMidCopy(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db, dead := openStoreAt(t, url), openStoreAt(t, url)
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	f := follow(t, db, c, Options{TTL: time.Second, Owner: "new"})
	if _, err := dead.Acquire(t.Context(), "chain:31337", "dead", 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	conn, err := dead.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `begin;
		select pg_advisory_xact_lock(x'6c656173'::int, hashtext('chain:31337:1'));
		select from chains for no key update`); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer conn.Release()
		_, _ = conn.Conn().PgConn().CopyFrom(context.Background(), r, "copy tags(hash, value) from stdin")
	}()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	eventually(t, "takes over", func() bool { return cursorOf(t, db).Number == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	w.Close()
	<-ended
}

// A process with another start block is told so and leaves the leader's status alone.
func TestLoserKeepsQuiet(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	db := openStore(t)
	follow(t, db, c, Options{})
	if _, err := db.Acquire(t.Context(), "chain:31337", "leader", time.Hour); err != nil {
		t.Fatal(err)
	}
	other := chainOf(c)
	other.StartBlock = 7
	loser := NewFollower(db, other, newNode(t, c, node.Options{}), Options{Owner: "loser"})
	if err := loser.Run(t.Context()); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("Run: %v", err)
	}
	if s := status(t, db); s.LastError != "" {
		t.Errorf("status says %q", s.LastError)
	}
}
