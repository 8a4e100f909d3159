package payer_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/internal/killtest"
	"repute/internal/paytest"
	"repute/orchestrator/payer"
	"repute/orchestrator/tasks"
	"repute/orchestrator/wallet/keys"
	"repute/store"
	"repute/store/rundb"
	"repute/x402"
)

// errand is the orchestrator that a process runs until it is killed.
type errand struct {
	Database, Rules string
	ChainID         uint64
	Token           common.Address
	Key             []byte // of the account that pays
}

// TestMain runs the tests, or what a test wants a process to do.
func TestMain(m *testing.M) { killtest.Main(m, runErrand) }

func runErrand(ctx context.Context, e errand) error {
	db, err := store.Open(ctx, e.Database, store.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	key, err := crypto.ToECDSA(e.Key)
	if err != nil {
		return err
	}
	engine, err := newEngine(db, e.Rules, buyer{}, payer.ForRuns(db, payer.RunOptions{HTTP: http.DefaultClient,
		Coins: []repute.Stablecoin{{ChainID: e.ChainID, Address: e.Token, Symbol: "USDC", Decimals: 6}},
		Keys:  func(uint64, string) (x402.Signer, error) { return keys.Local{Key: key}, nil }}))
	if err != nil {
		return err
	}
	return engine.Run(ctx)
}

// striker kills a process at one of its messages to the database or to servers: before the other side
// has the message, or after. It counts from the message on that journals a payment.
type striker struct {
	mu        sync.Mutex
	child     *exec.Cmd // nil: nobody is killed
	at, count int
	counting  bool
	paid      map[string]int // requests by their payment
}

// strike counts half a message.
func (s *striker) strike(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counting = s.counting || bytes.Contains(message, []byte("execute/payment/"))
	if s.child == nil || !s.counting {
		return
	}
	if s.count++; s.count >= s.at {
		_ = s.child.Process.Kill()
		s.child = nil
	}
}

// start starts a process that is killed at a half message, or is not where at is 0.
func (s *striker) start(t *testing.T, e errand, at int) *exec.Cmd {
	t.Helper()
	child, err := killtest.Command(t.Context(), e)
	ok(t, err)
	log := &bytes.Buffer{}
	child.Stderr = log
	s.mu.Lock()
	defer s.mu.Unlock()
	ok(t, child.Start())
	if s.at, s.count, s.counting = at, 0, false; at > 0 {
		s.child = child
	}
	return child
}

// server listens for requests of the process, and returns the URL of a server through it.
func (s *striker) server(t *testing.T, to string) string {
	t.Helper()
	u, err := url.Parse(to)
	ok(t, err)
	path := u.Path
	u.Path = ""
	proxy := httputil.NewSingleHostReverseProxy(u)
	l := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		s.note(r.Header.Get(x402.HeaderPayment))
		s.strike(nil)
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r.WithContext(context.WithoutCancel(r.Context())))
		s.strike(nil)
		for name, values := range answer.Header() {
			out.Header()[name] = values
		}
		out.WriteHeader(answer.Code)
		_, _ = out.Write(answer.Body.Bytes())
	}))
	t.Cleanup(l.Close)
	return l.URL + path
}

// note counts a request with a payment.
func (s *striker) note(payment string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if payment != "" {
		s.paid[payment]++
	}
}

// stride is how many half messages lie between kills; with 2 there are 80 kills in three minutes.
const stride = 9

// TestKilledInPayment kills the orchestrator with -9 at its messages from the journal of a payment on,
// and lets another process go on: each task is completed, and its answer is paid once and made once.
func TestKilledInPayment(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts many processes")
	}
	w := newWorld(t)
	w.trusted("wallet", "40")
	to, handler := w.runtime(t)
	s := &striker{paid: map[string]int{}}
	shop, index := s.server(t, to), s.server(t, w.index)
	client, err := tasks.NewClient(w.db)
	ok(t, err)
	o := &office{w, client}
	e := errand{Rules: fmt.Sprintf(payments, index), ChainID: w.Chain().ID, Token: w.Token,
		Key: crypto.FromECDSA(w.Account(paytest.PayerAccount).Key), Database: killtest.Relay(t, w.database, s.strike)}
	idle := s.start(t, e, 0) // installs the agent
	o.until(t, "agent is installed",
		func() bool { _, err := rundb.Module(t.Context(), w.db, "buyer"); return err == nil })
	ok(t, idle.Process.Kill())
	_ = idle.Wait()
	killed, tasks := 0, 0
	for at := 1; at < 200; at += stride {
		task := o.submit(t, input(shop, fmt.Sprint("text ", at)))
		tasks++
		first := s.start(t, e, at)
		dead := make(chan struct{})
		go func() { _ = first.Wait(); close(dead) }()
		done := false
		o.until(t, "the process dies, or the task ends", func() bool {
			select {
			case <-dead:
				return true
			default:
			}
			run, err := rundb.Run(t.Context(), w.db, task.Run)
			ok(t, err)
			done = run.Status.Ended()
			return done
		})
		if !done {
			killed++
			second := s.start(t, e, 0)
			o.ended(t, task)
			ok(t, second.Process.Kill())
			_ = second.Wait()
		} else {
			_ = first.Process.Kill() // it may be dead by now
			<-dead
		}
		task, run := o.ended(t, task)
		if task.Status != repute.TaskCompleted || w.paid(t) != int64(tasks)*10_000 || handler.count() != tasks ||
			len(o.payments(t, run)) != 1 || o.bought(t, run)[0].Payment == nil {
			t.Fatalf("killed at %d: %d tasks, %d units, %d runs, task %s: %s", at, tasks, w.paid(t), handler.count(),
				task.Status,
				run.Error)
		}
		if done {
			break
		}
	}
	again := 0 // payments that another process sent again
	for _, n := range s.paid {
		again += min(n-1, 1)
	}
	if killed < 10 || again < 1 || len(s.paid) != tasks {
		t.Errorf("%d processes were killed, %d payments for %d tasks, %d of them sent again", killed, len(s.paid),
			tasks, again)
	}
	t.Logf("%d tasks, %d processes killed, %d payments sent again", tasks, killed, again)
}
