package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/orchestrator"
	"repute/orchestrator/agents"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
)

// Variables of the environment: workerVariable holds what a process of TestKilledInExecute
// works on, seedVariable repeats one of its orders.
const (
	workerVariable = "REPUTE_AGENTS_TEST_WORKER"
	seedVariable   = "REPUTE_TEST_SEED"
)

// workplace is where a process works: it has the wallet with its keys, payer and reporter.
type workplace struct {
	Database string
	Wallet   wallet.ChainConfig
	Chain    agents.Chain
	Reporter common.Address
}

// TestMain runs the tests, or works until it is killed.
func TestMain(m *testing.M) {
	text := os.Getenv(workerVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := runWorker([]byte(text)); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(1)
}

func runWorker(text []byte) error {
	var p workplace
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := store.Open(ctx, p.Database, store.Options{})
	if err != nil {
		return err
	}
	purse, err := wallet.Open(db, wallet.Config{Chains: []wallet.ChainConfig{p.Wallet}})
	if err != nil {
		return err
	}
	rules, err := policy.Parse([]byte("version: \"1\"\n"))
	if err != nil {
		return err
	}
	o := orchestrator.Options{Lenient: true, Policy: func() *policy.Policy { return rules }, Chain: purse,
		HTTP:       http.DefaultClient,
		Registries: []safety.Registries{p.Wallet.Registries}, TrustChain: p.Chain.ID, ExecutionChain: p.Chain.ID,
		Hold: time.Second}
	for name, self := range map[string]agents.Self{agents.Payer: {}, agents.Reporter: {Wallet: p.Reporter}} {
		a, err := agents.New(name, self, agents.Options{Chains: []agents.Chain{p.Chain}})
		if err != nil {
			return err
		}
		o.Modules = append(o.Modules, a)
	}
	e, err := orchestrator.New(db, o)
	if err != nil {
		return err
	}
	go func() { _ = purse.Run(ctx) }()
	return e.Run(ctx)
}

// moment is a request of a worker to its node at which it is killed: the times-th of a
// method since it began, before the node has it or once it has answered.
type moment struct {
	method string
	after  bool
	times  int
}

// moments are those of a transaction's way: what it would come to, its nonce and fees
// (nothing is signed yet), its broadcast (the intent is stored), and its receipt.
func moments(rnd *rand.Rand) (out []moment) {
	for _, method := range []string{"eth_call", "eth_estimateGas", "eth_getTransactionCount",
		"eth_maxPriorityFeePerGas", "eth_sendRawTransaction", "eth_getTransactionReceipt"} {
		for _, after := range []bool{false, true} {
			out = append(out, moment{method, after, 1 + rnd.IntN(3)})
		}
	}
	rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	if testing.Short() {
		return out[:3]
	}
	return out
}

// assassin stands between a worker and its node.
type assassin struct {
	target string
	mu     sync.Mutex
	victim *exec.Cmd
	at     moment
}

// strikes kills the worker where its moment has come.
func (a *assassin) strikes(methods []string, after bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.victim == nil || after != a.at.after || !slices.Contains(methods, a.at.method) {
		return false
	}
	if a.at.times--; a.at.times > 0 {
		return false
	}
	_ = a.victim.Process.Kill()
	a.victim = nil
	return true
}

// ServeHTTP passes a request on, unless the worker dies of it.
func (a *assassin) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	methods := methodsOf(body)
	if err != nil || a.strikes(methods, false) {
		return
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), http.MethodPost, a.target,
		bytes.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || a.strikes(methods, true) {
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(answer)
}

func methodsOf(body []byte) (out []string) {
	type call struct{ Method string }
	var one call
	var many []call
	if json.Unmarshal(body, &one) == nil {
		many = []call{one}
	} else if json.Unmarshal(body, &many) != nil {
		return nil
	}
	for _, c := range many {
		out = append(out, c.Method)
	}
	return out
}

// workplace is where workers of this world work, with a node at a URL.
func (w *world) workplace(node string) []byte {
	w.t.Helper()
	c := w.d.Chain()
	registries := safety.Registries{ChainID: c.ID, Identity: c.Identity, Reputation: c.Reputation,
		Validations: c.Validations}
	text, err := json.Marshal(workplace{Database: w.url, Chain: w.options().Chains[0],
		Reporter: w.d.Account(reporterAccount).Address,
		Wallet: wallet.ChainConfig{ChainID: c.ID, RPC: []string{node}, Treasury: w.treasury, Registries: registries,
			Operator:   w.key(operatorAccount),
			Identities: map[string]keys.Config{agents.Reporter: w.key(reporterAccount)}, Confirmations: 2,
			Poll: 20 * time.Millisecond}})
	ok(w.t, err)
	return text
}

func (w *world) worker(place []byte) *exec.Cmd {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workerVariable+"="+string(place)), os.Stderr
	ok(w.t, cmd.Start())
	return cmd
}

// kill has a worker die at a moment.
func (w *world) kill(a *assassin, place []byte, at moment) {
	w.t.Helper()
	a.mu.Lock()
	cmd := w.worker(place)
	a.victim, a.at = cmd, at
	a.mu.Unlock()
	dead := make(chan error, 1)
	go func() { dead <- cmd.Wait() }()
	select {
	case err := <-dead:
		if exit, is := err.(*exec.ExitError); !is || exit.Exited() {
			w.t.Fatalf("at %+v the worker was not killed: %v", at, err)
		}
	case <-time.After(90 * time.Second):
		_ = cmd.Process.Kill()
		w.t.Fatalf("the worker never came to %+v", at)
	}
}

const (
	eachPayment = 10 // wei
	eachRating  = 2  // transactions of a reporter's run
)

// ask submits a task for the payer and one for the reporter.
func (w *world) ask() (out []repute.Task) {
	w.t.Helper()
	for agent, input := range map[string]string{agents.Payer: fmt.Sprintf(`{"to":%q,"amount":"%d"}`,
		w.d.Account(payeeAccount).Address, eachPayment),
		agents.Reporter: `{"agent":"31337:0","requests":2}`} {
		task, _, err := w.client.Submit(w.t.Context(),
			standard.Request{Coordinator: agent, Goal: "test", Input: json.RawMessage(input), By: "test"})
		ok(w.t, err)
		out = append(out, task)
	}
	return out
}

// Workers with the wallet die at every request that a transaction takes, those that come
// after them finish: every run is completed, no phase is done again, and each transaction is
// on the chain once.
func TestKilledInExecute(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		ok(t, err)
	}
	t.Logf("%s=%d", seedVariable, seed)
	w := newFounded(t)
	b := w.d.Batch()
	b.Send(w.d.Account(ownerAccount), &w.treasury,
		treasuryABI.PackSetPolicy(crypto.Keccak256Hash([]byte(agents.Payer)), true,
			w.d.Account(operatorAccount).Address,
			big.NewInt(eachPayment), big.NewInt(1000), new(big.Int)))
	_, err := b.Mine(t.Context())
	ok(t, err)
	before := w.balance(payeeAccount)
	a := &assassin{target: w.d.RPCURL()}
	node := httptest.NewServer(a)
	t.Cleanup(node.Close)
	place := w.workplace(node.URL)
	w.d.SetPeriod(20 * time.Millisecond)

	var tasks []repute.Task
	stored := map[string][]repute.RunPhase{}
	installed := w.worker(place)
	w.until("agents are installed",
		func() bool { list, err := rundb.Modules(t.Context(), w.db); return err == nil && len(list) == 2 })
	ok(t, installed.Process.Kill())
	_ = installed.Wait()
	for _, at := range moments(rand.New(rand.NewPCG(seed, 0))) {
		tasks = append(tasks, w.ask()...)
		w.kill(a, place, at)
		for _, task := range tasks {
			list, err := rundb.Phases(t.Context(), w.db, task.Run)
			ok(t, err)
			w.kept(task.Run, stored[task.Run], list)
			stored[task.Run] = list
		}
	}
	last := w.worker(place)
	t.Cleanup(func() { _ = last.Process.Kill(); _ = last.Wait() })
	for _, task := range tasks {
		w.finished(task, stored[task.Run])
	}
	w.once(tasks, before)
}

// kept checks that phases that were stored are still there as they were.
func (w *world) kept(run string, before, now []repute.RunPhase) {
	w.t.Helper()
	if len(now) < len(before) || !slices.EqualFunc(before, now[:len(before)], func(a, b repute.RunPhase) bool {
		return a.Phase == b.Phase && a.Attempt == b.Attempt && a.Ended.Equal(b.Ended) &&
			string(a.Result) == string(b.Result)
	}) {
		w.t.Errorf("run %s: phases %+v became %+v", run, before, now)
	}
}

// finished waits for a task, which must be completed, with every phase once.
func (w *world) finished(task repute.Task, before []repute.RunPhase) {
	w.t.Helper()
	w.until("task ended", func() bool {
		run, err := rundb.Run(w.t.Context(), w.db, task.Run)
		ok(w.t, err)
		return run.Status.Ended()
	})
	task, err := rundb.Task(w.t.Context(), w.db, task.ID)
	ok(w.t, err)
	list, err := rundb.Phases(w.t.Context(), w.db, task.Run)
	ok(w.t, err)
	w.kept(task.Run, before, list)
	run, err := rundb.Run(w.t.Context(), w.db, task.Run)
	ok(w.t, err)
	want := 1
	if run.Agent == agents.Reporter {
		want = eachRating
	}
	if task.Status != repute.TaskCompleted || len(list) != len(repute.Phases()) || run.Used.Steps != 1 ||
		run.Used.Writes != want {
		w.t.Errorf("task of %s is %s with %d phases, %d steps, %d writes: %s", run.Agent, task.Status, len(list),
			run.Used.Steps, run.Used.Writes, run.Error)
	}
}

// once compares what the journal has with what is on the chain.
func (w *world) once(tasks []repute.Task, before *big.Int) {
	w.t.Helper()
	sent := map[common.Hash]bool{} // by the agents' own results
	for _, task := range tasks {
		steps, err := rundb.Steps(w.t.Context(), w.db, task.Run)
		ok(w.t, err)
		var result struct {
			agents.Paid
			agents.Reported
		}
		ok(w.t, json.Unmarshal(steps[0].Result, &result))
		if result.Tx != (common.Hash{}) {
			sent[result.Tx] = true
		}
		for _, r := range result.Ratings {
			sent[r.Tx] = true
		}
	}
	half := len(tasks) / 2
	ratings, err := w.d.View().AllFeedback(w.t.Context(), 0)
	ok(w.t, err)
	paid := new(big.Int).Sub(w.balance(payeeAccount), before)
	if paid.Int64() != int64(half*eachPayment) || len(ratings) != half*eachRating ||
		w.nonceOf(operatorAccount) != uint64(half) || w.nonceOf(reporterAccount) != uint64(half*eachRating) {
		w.t.Errorf("of %d payments and %d ratings: %s wei paid by %d transactions, %d ratings by %d", half,
			half*eachRating, paid, w.nonceOf(operatorAccount), len(ratings), w.nonceOf(reporterAccount))
	}
	mined := w.minedBy(operatorAccount, reporterAccount)
	if len(sent) != half*(1+eachRating) || len(mined) != len(sent) {
		w.t.Errorf("agents tell of %d transactions, the chain has %d", len(sent), len(mined))
	}
	for _, h := range mined {
		if !sent[h] {
			w.t.Errorf("no agent tells of transaction %s", h)
		}
	}
	w.t.Logf("%d runs, %d transactions", len(tasks), len(sent))
}

func (w *world) balance(account int) *big.Int {
	w.t.Helper()
	v, err := w.d.Client().BalanceAt(w.t.Context(), w.d.Account(account).Address, nil)
	ok(w.t, err)
	return v
}

func (w *world) nonceOf(account int) uint64 {
	w.t.Helper()
	v, err := w.d.Client().NonceAt(w.t.Context(), w.d.Account(account).Address, nil)
	ok(w.t, err)
	return v
}

// minedBy lists the transactions of accounts that the chain has.
func (w *world) minedBy(accounts ...int) (out []common.Hash) {
	w.t.Helper()
	form := types.LatestSignerForChainID(new(big.Int).SetUint64(w.d.Chain().ID))
	for i := uint64(1); i <= w.d.Head().Number; i++ {
		b, err := w.d.Client().BlockByNumber(w.t.Context(), new(big.Int).SetUint64(i))
		ok(w.t, err)
		for _, tx := range b.Transactions() {
			if from, err := types.Sender(form, tx); err == nil &&
				slices.ContainsFunc(accounts, func(a int) bool { return w.d.Account(a).Address == from }) {
				out = append(out, tx.Hash())
			}
		}
	}
	return out
}
