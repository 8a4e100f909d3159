package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/pflag"

	"repute/cmd/repute/internal/config"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
)

// Three processes on one database and one chain, while their leader is killed,
// frozen or cut off from the database again and again and the chain grows and
// forks. Somebody always takes over, nobody ever commits under a lease that is
// not theirs, and in the end nothing shows. REPUTE_SOAK is how long to go on,
// with the default lease instead of a short one; REPUTE_SEED repeats a run.
func TestTakeover(t *testing.T) {
	seed, until := soak(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	lease := 2 * time.Second
	if !until.IsZero() {
		lease = defaultLease(t)
	}
	w := newTakeoverWorld(t, lease)
	go w.live(rand.New(rand.NewPCG(seed, 2)))
	order := rnd.Perm(len(faults))
	for i := 0; i < len(faults) || time.Now().Before(until); i++ {
		f := faults[order[i%len(order)]]
		took := w.strike(t, f)
		t.Logf("%s: taken over after %.1f leases (%s)", f.name, took.Seconds()/lease.Seconds(),
			took.Round(time.Millisecond))
		if took > 5*lease {
			t.Errorf("%s: %s without a leader, the lease is %s", f.name, took, lease)
		}
	}
	w.settle(t)
}

// The times that operators are told, at the default lease: another process takes over
// from a killed one in a fifth of it, also the killed one's successor, and from one that
// is frozen in the middle of a transaction in one and a half.
func TestTakeoverTimes(t *testing.T) {
	lease := defaultLease(t)
	w := newTakeoverWorld(t, lease)
	go w.live(rand.New(rand.NewPCG(1, 2)))
	within := func(what string, took, most time.Duration) {
		t.Logf("%s: %s", what, took.Round(time.Millisecond))
		if took > most {
			t.Errorf("%s: %s without a leader, want at most %s", what, took, most)
		}
	}
	within("standing by while the leader is killed", w.strike(t, faults[0]), lease/5)
	within("the leader is frozen in a transaction", w.strike(t, frozenInTransaction), lease*3/2)
	w.eventually(t, "there is a leader", func() bool { return w.leader(t) != nil })
	for _, r := range w.replicas {
		r.signal(t, syscall.SIGKILL)
		_ = r.cmd.Wait()
	}
	began := time.Now()
	w.start(t, w.replicas[0])
	w.advance(t)
	within("started again after a kill", time.Since(began), lease/5)
	w.settle(t)
}

// frozenInTransaction stops the leader while a batch of its waits for a table, which it
// then gets.
var frozenInTransaction = fault{"SIGSTOP in a transaction",
	func(t *testing.T, w *takeoverWorld, r *replica) {
		tx, err := w.conn.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), "lock table votes in exclusive mode")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.eventually(t, "a batch waits", func() (waits bool) {
			err := tx.QueryRow(t.Context(), `select exists (select from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and application_name = $1)`, r.name).Scan(&waits)
			return err == nil && waits
		})
		r.signal(t, syscall.SIGSTOP)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	},
	func(t *testing.T, _ *takeoverWorld, r *replica) { r.signal(t, syscall.SIGCONT) }}

// soak reads the seed and the end of a long run, zero for a short one.
func soak(t *testing.T) (seed uint64, until time.Time) {
	t.Helper()
	seed = rand.Uint64()
	if s := os.Getenv("REPUTE_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("REPUTE_SEED=%d", seed)
	if s := os.Getenv("REPUTE_SOAK"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		until = time.Now().Add(d)
	}
	return seed, until
}

// fault takes a leader out and later brings it back.
type fault struct {
	name      string
	hit, heal func(*testing.T, *takeoverWorld, *replica)
}

var faults = []fault{
	{"kill -9", func(t *testing.T, _ *takeoverWorld, r *replica) { r.signal(t, syscall.SIGKILL); _ = r.cmd.Wait() },
		func(t *testing.T, w *takeoverWorld, r *replica) { w.start(t, r) }},
	{"SIGSTOP", func(t *testing.T, _ *takeoverWorld, r *replica) { r.signal(t, syscall.SIGSTOP) },
		func(t *testing.T, _ *takeoverWorld, r *replica) { r.signal(t, syscall.SIGCONT) }},
	{"cut connection", func(_ *testing.T, _ *takeoverWorld, r *replica) { r.link.cut(true) },
		func(_ *testing.T, _ *takeoverWorld, r *replica) { r.link.cut(false) }},
}

// replica is one process and its own way to the database.
type replica struct {
	name, config string
	lease        time.Duration
	link         *link
	cmd          *exec.Cmd
	out          *bytes.Buffer
}

func (r *replica) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

type takeoverWorld struct {
	chain    *rpctest.Chain
	db       *store.DB
	conn     *pgx.Conn
	replicas []*replica
	quiet    chan struct{} // closed to stop the chain
	stopped  chan struct{}
}

// audit keeps who moved the cursor and who held the lease then.
const audit = `
	create table audit (application text, owner text, number bigint);
	create function note() returns trigger language plpgsql as $$ begin
		insert into audit select current_setting('application_name'),
			(select owner from leases where name = 'chain:' || new.chain_id and expires_at > clock_timestamp()),
				new.cursor_block;
		return new;
	end $$;
	create trigger audited after update of cursor_block on chains for each row execute function note()`

func newTakeoverWorld(t *testing.T, lease time.Duration) *takeoverWorld {
	t.Helper()
	database := pgtest.New(t)
	w := &takeoverWorld{chain: rpctest.New(t, rpctest.Options{}), db: openTest(t, database),
		quiet: make(chan struct{}), stopped: make(chan struct{})}
	w.chain.Mine(w.chain.Register(0, rpctest.Account(1), "data:,{}"))
	var err error
	if w.conn, err = pgx.Connect(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.conn.Close(context.Background()) })
	if _, err := w.conn.Exec(t.Context(), audit); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r := &replica{name: fmt.Sprintf("replica%d", i), lease: lease, link: newLink(t, database)}
		r.config = configure(t, w.chain, r.link.url(t, database, r.name))
		w.replicas = append(w.replicas, r)
		w.start(t, r)
	}
	return w
}

func (w *takeoverWorld) start(t *testing.T, r *replica) {
	r.cmd, r.out = leasing(t, r.lease, "serve", "--config", r.config)
}

// live makes blocks and short forks until the world is quiet.
func (w *takeoverWorld) live(rnd *rand.Rand) {
	defer close(w.stopped)
	given := uint64(0)
	for {
		select {
		case <-w.quiet:
			return
		case <-time.After(20 * time.Millisecond):
		}
		if rnd.IntN(20) == 0 {
			head := w.chain.Head().Number()
			w.chain.Fork(head - min(head-1, rnd.Uint64N(3)))
			given = feedbackOf(w.chain)
		}
		given++
		w.chain.Mine(w.chain.Feedback(0, rpctest.Account(2), given, rnd.Int64N(100), "starred"))
	}
}

// feedbackOf is the newest feedback number on the canonical chain.
func feedbackOf(c *rpctest.Chain) uint64 {
	return uint64(len(c.Blocks())) - 2 // the first block and the registration have none
}

// leader is the replica that holds the lease, nil when none does.
func (w *takeoverWorld) leader(t *testing.T) *replica {
	t.Helper()
	var owner string
	err := w.conn.QueryRow(t.Context(), `select coalesce(max(owner), '') from leases
		where name = 'chain:31337' and expires_at > clock_timestamp()`).Scan(&owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range w.replicas {
		if strings.Contains(owner, fmt.Sprintf(":%d:", r.cmd.Process.Pid)) {
			return r
		}
	}
	return nil
}

// strike hits the leader and gives the time until another one has stored a block.
func (w *takeoverWorld) strike(t *testing.T, f fault) time.Duration {
	t.Helper()
	var victim *replica
	w.eventually(t, "there is a leader", func() bool { victim = w.leader(t); return victim != nil })
	w.advance(t)
	if victim = w.leader(t); victim == nil {
		t.Fatal("the leader is gone without a fault")
	}
	f.hit(t, w, victim)
	hit := time.Now()
	w.eventually(t, f.name+": another process leads", func() bool { l := w.leader(t); return l != nil && l != victim })
	w.advance(t)
	took := time.Since(hit)
	f.heal(t, w, victim)
	w.advance(t)
	return took
}

// advance waits for a new block in the database.
func (w *takeoverWorld) advance(t *testing.T) {
	t.Helper()
	from := w.commits(t)
	w.eventually(t, "blocks are stored", func() bool { return w.commits(t) > from+1 })
}

func (w *takeoverWorld) commits(t *testing.T) (n int) {
	t.Helper()
	if err := w.conn.QueryRow(t.Context(), "select count(*) from audit").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *takeoverWorld) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			for _, r := range w.replicas {
				t.Logf("%s: %.3000s", r.name, r.out)
			}
			t.Fatalf("not within the time: %s", what)
		}
	}
}

// settle stops the chain and compares with a fresh index; nobody may have
// committed under another's lease.
func (w *takeoverWorld) settle(t *testing.T) {
	t.Helper()
	close(w.quiet)
	<-w.stopped
	head := w.chain.Head()
	w.eventually(t, "the head is stored", func() bool {
		b, err := chaindb.Cursor(t.Context(), w.db, 31337)
		return err == nil && b.Hash == head.Hash()
	})
	var foreign, forgotten int
	err := w.conn.QueryRow(t.Context(), `
		with own as (select distinct on (owner) owner, application from audit where owner is not null order by owner, number)
		select count(*) filter (where a.owner is null), count(*) filter (where a.application <> o.application)
		from audit a left join own o using (owner)`).Scan(&forgotten, &foreign)
	if err != nil || foreign > 0 || forgotten > 0 {
		t.Errorf("%d commits under another's lease, %d without any (%v)", foreign, forgotten, err)
	}
	database := pgtest.New(t)
	fresh := openTest(t, database)
	_, out := child(t, "serve", "--config", configure(t, w.chain, database))
	waitCursor(t, fresh, head.Number(), out)
	if got, want := dump(t, w.db), dump(t, fresh); !bytes.Equal(got, want) {
		t.Errorf("the dump differs from a fresh index: %d bytes, fresh %d", len(got), len(want))
	}
}

// link forwards connections to the database until it is cut: then they stay
// open and nothing passes, as behind a broken network.
type link struct {
	listener net.Listener
	network  string
	address  string

	mu     sync.Mutex
	passes chan struct{} // closed while traffic passes
}

func newLink(t *testing.T, database string) *link {
	t.Helper()
	config, err := pgconn.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	l := &link{passes: make(chan struct{})}
	close(l.passes)
	l.network, l.address = pgconn.NetworkAddress(config.Host, config.Port)
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.listener.Close() })
	go l.serve()
	return l
}

// url is the database behind the link, with a name for its sessions.
func (l *link) url(t *testing.T, database, name string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = l.listener.Addr().String()
	q := u.Query()
	q.Del("host")
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func (l *link) cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cut {
		l.passes = make(chan struct{})
	} else {
		close(l.passes)
	}
}

func (l *link) wait() {
	l.mu.Lock()
	passes := l.passes
	l.mu.Unlock()
	<-passes
}

func (l *link) serve() {
	for {
		c, err := l.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			l.wait()
			server, err := net.Dial(l.network, l.address)
			if err != nil {
				return
			}
			defer server.Close()
			go l.pass(server, c)
			l.pass(c, server)
		}()
	}
}

func (l *link) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.wait()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// defaultLease is the lease of processes that are not told another one.
func defaultLease(t *testing.T) time.Duration {
	var f config.Flags
	f.Serving(pflag.NewFlagSet("test", pflag.ContinueOnError))
	c, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	return c.Lease
}
