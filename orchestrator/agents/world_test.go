package agents_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/indexer"
	"repute/indexer/node"
	"repute/internal/paytest"
	"repute/internal/pgtest"
	"repute/orchestrator"
	"repute/orchestrator/agents"
	"repute/orchestrator/payer"
	"repute/orchestrator/remote"
	"repute/orchestrator/safety"
	"repute/orchestrator/standard"
	"repute/orchestrator/tasks"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/policy"
	"repute/store"
	"repute/store/rundb"
	"repute/x402"
)

// Accounts of the devnet by what they do in these tests.
const (
	ownerAccount = iota
	operatorAccount
	reporterAccount
	validatorAccount
	registrarAccount
	subjectAccount
	newWalletAccount
	payeeAccount
	settlerAccount
)

var treasuryABI = bindings.NewOpenFiTreasury()

// world is a chain with a treasury of 1,000 wei of which the payer may move 100 at once,
// agent 0 with an endpoint that answers, and an engine with the agents.
type world struct {
	t        *testing.T
	d        *devnet.Devnet
	url      string // of the database
	db       *store.DB
	client   *tasks.Client
	treasury common.Address
	server   *httptest.Server
	asked    atomic.Int32
	purse    *wallet.Wallet
	broken   atomic.Int32 // every how manieth request fails, 0 for none
	token    common.Address
	shop     atomic.Pointer[paytest.Shop] // the subject's paid endpoint; nil: there is none
	// low is the bound of the subject's score in the scripted index that payers ask.
	low    atomic.Int32
	scores *httptest.Server
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// newWorld starts it. served says which agents are asked over the protocol.
func newWorld(t *testing.T, served ...string) *world {
	t.Helper()
	w := newFounded(t)
	w.start(served)
	w.d.SetPeriod(20 * time.Millisecond)
	return w
}

// newFounded is a world without an engine, and without blocks but those that are mined.
func newFounded(t *testing.T) *world {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{Accounts: 10})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w := &world{t: t, d: d, url: pgtest.New(t)}
	w.server, w.scores = httptest.NewServer(http.HandlerFunc(w.serve)), httptest.NewServer(http.HandlerFunc(w.score))
	t.Cleanup(w.server.Close)
	t.Cleanup(w.scores.Close)
	w.found()
	w.db, err = store.Open(t.Context(), w.url, store.Options{})
	ok(t, err)
	t.Cleanup(w.db.Close)
	w.client, err = tasks.NewClient(w.db)
	ok(t, err)
	return w
}

// index reads the chain up to its head: the runtime looks up whose records a call changes.
func (w *world) index() {
	for head := w.d.Head().Number; w.d.Finalized().Number < head; { // nothing is judged before
		_, err := w.d.Mine(w.t.Context())
		ok(w.t, err)
	}
	n, err := node.New(w.d.RPCURL(), node.Options{})
	ok(w.t, err)
	chain := w.d.Chain()
	pool := node.NewPool([]*node.Node{n}, node.PoolOptions{ChainID: chain.ID, DB: w.db})
	defer pool.Close()
	ok(w.t, indexer.NewFollower(w.db, chain, pool, indexer.Options{Once: true}).Run(w.t.Context()))
}

// score is an index that knows the subject alone.
func (w *world) score(rw http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/reputation"):
		fmt.Fprintf(rw, `{"score":60,"low":%d,"status":"rated"}`, w.low.Load())
	case strings.EqualFold(r.URL.Query().Get("wallet"), w.d.Account(subjectAccount).Address.Hex()):
		fmt.Fprintf(rw, `{"items":[{"id":%q}]}`, w.identity(0))
	default:
		fmt.Fprint(rw, `{"items":[]}`)
	}
}

// serve is the subject's endpoint.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if shop := w.shop.Load(); shop != nil && r.URL.Path == "/paid" {
		shop.ServeHTTP(rw, r)
		return
	}
	if n, every := w.asked.Add(1), w.broken.Load(); every > 0 && n%every == 0 {
		http.Error(rw, "broken", http.StatusInternalServerError)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprint(rw, `{"sum": 42, "of": [40, 2]}`)
}

// found deploys the treasury and registers the subject, agent 0, and the validator, agent 1.
func (w *world) found() {
	owner, b := w.d.Account(ownerAccount), w.d.Batch()
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		treasuryABI.PackConstructor(owner.Address)...))
	w.treasury = crypto.CreateAddress(owner.Address, 0)
	b.Pay(owner, w.treasury, big.NewInt(1000))
	key := crypto.Keccak256Hash([]byte(agents.Payer))
	b.Send(owner, &w.treasury, treasuryABI.PackSetPolicy(key, true, w.d.Account(operatorAccount).Address,
		big.NewInt(100), big.NewInt(150), new(big.Int)))
	for _, payee := range []int{payeeAccount, subjectAccount} {
		b.Send(owner, &w.treasury, treasuryABI.PackSetCall(key, w.d.Account(payee).Address, [4]byte{}, true))
	}
	b.Register(w.d.Account(subjectAccount),
		fmt.Sprintf(`{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"Subject","services":[{"name":"web","endpoint":%q},{"name":"paid","endpoint":%q}]}`, w.server.URL+"/work", w.server.URL+"/paid"))
	b.Register(w.d.Account(validatorAccount), "")
	token := fixtures.NewAuthorizedToken()
	b.Send(owner, nil, append(common.FromHex(fixtures.AuthorizedTokenMetaData.Bin),
		token.PackConstructor(paytest.TokenName, paytest.TokenVersion)...))
	w.token = crypto.CreateAddress(owner.Address, 5)
	b.Send(owner, &w.token, token.PackMint(w.d.Account(reporterAccount).Address, big.NewInt(paytest.Funds)))
	_, err := b.Mine(w.t.Context())
	ok(w.t, err)
}

// key is a file with an account's key.
func (w *world) key(account int) keys.Config {
	path := filepath.Join(w.t.TempDir(), "key")
	ok(w.t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(w.d.Account(account).Key))), 0o600))
	return keys.Config{KeyFile: path}
}

// identity is an agent of the devnet.
func (w *world) identity(n uint64) *repute.AgentID {
	id := repute.AgentID{ChainID: w.d.Chain().ID, Registry: w.d.Chain().Identity}
	id.TokenID.SetUint64(n)
	return &id
}

func (w *world) options() agents.Options {
	c := w.d.Chain()
	return agents.Options{Chains: []agents.Chain{{ID: c.ID, Identity: c.Identity, Reputation: c.Reputation,
		Validations: c.Validations, Treasury: w.treasury}}, Sources: []string{w.server.URL + "/proven"}}
}

// start runs an engine with a wallet until the test ends.
func (w *world) start(served []string) {
	c := w.d.Chain()
	registries := safety.Registries{ChainID: c.ID, Identity: c.Identity, Reputation: c.Reputation,
		Validations: c.Validations}
	purse, err := wallet.Open(w.db,
		wallet.Config{Chains: []wallet.ChainConfig{{ChainID: c.ID, RPC: []string{w.d.RPCURL()}, Treasury: w.treasury,
			Registries: registries,
			Operator:   w.key(operatorAccount), Confirmations: 1, Poll: 10 * time.Millisecond,
			Tokens: []common.Address{w.token},
			Identities: map[string]keys.Config{agents.Reporter: w.key(reporterAccount),
				agents.Validator: w.key(validatorAccount), agents.Registrar: w.key(registrarAccount),
				"fresh": w.key(newWalletAccount), "settler": w.key(settlerAccount)},
			Consents: []string{"fresh"}}}, Registrar: agents.Registrar})
	ok(w.t, err)
	w.t.Cleanup(purse.Close)
	w.purse = purse
	selves := map[string]agents.Self{agents.Coordinator: {}, agents.Payer: {},
		agents.Registrar: {Wallet: w.d.Account(registrarAccount).Address},
		agents.Reporter:  {Wallet: w.d.Account(reporterAccount).Address},
		agents.Validator: {Wallet: w.d.Account(validatorAccount).Address, ID: w.identity(1)}}
	p, err := policy.Parse(fmt.Appendf(nil, "version: \"1\"\npayments: {index: %q}\n", w.scores.URL))
	ok(w.t, err)
	o := orchestrator.Options{Lenient: true, Policy: func() *policy.Policy { return p }, Chain: purse,
		Payer: payer.ForRuns(w.db, payer.RunOptions{HTTP: http.DefaultClient, Coins: []repute.Stablecoin{{ChainID: c.ID,
			Address: w.token, Symbol: paytest.TokenName, Decimals: 6}},
			Keys: func(chainID uint64, slug string) (x402.Signer, error) { return purse.IdentityKey(chainID, slug) }}),
		HTTP: http.DefaultClient, Registries: []safety.Registries{registries},
		TrustChain: c.ID, ExecutionChain: c.ID, Hold: 5 * time.Second,
		Tools: map[string]orchestrator.Tool{agents.ConsentTool: consents{w, purse}},
		Remote: func(known repute.Module) (orchestrator.Module, error) {
			return remote.Stored(known, remote.Options{Client: http.DefaultClient})
		}}
	for _, name := range agents.Names() {
		a, err := agents.New(name, selves[name], w.options())
		ok(w.t, err)
		if strings.Contains(strings.Join(served, " "), name) {
			s := httptest.NewServer(agents.Handler(a))
			w.t.Cleanup(s.Close)
			manifest, err := json.Marshal(a.Info().Manifest)
			ok(w.t, err)
			ok(w.t, rundb.SaveModule(w.t.Context(), w.db, repute.Module{Slug: name, URL: s.URL, Manifest: manifest,
				DryRun: true}))
			continue
		}
		o.Modules = append(o.Modules, a)
	}
	e, err := orchestrator.New(w.db, o)
	ok(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	w.until("agents are installed", func() bool {
		list, err := rundb.Modules(w.t.Context(), w.db)
		return err == nil && len(list) == len(agents.Names())
	})
}

// consents asks the wallet.
type consents struct {
	w     *world
	purse *wallet.Wallet
}

// Call implements orchestrator.Tool.
func (c consents) Call(ctx context.Context, by transaction.Origin, _ string, input json.RawMessage) (json.RawMessage,
	error) {
	var q agents.ConsentRequest
	if err := json.Unmarshal(input, &q); err != nil {
		return nil, err
	}
	id, _ := new(big.Int).SetString(q.AgentID, 10)
	deadline := c.w.d.Head().Time.Unix() + 200
	signature, err := c.purse.ConsentOfRun(ctx, by,
		wallet.Consent{ChainID: q.ChainID, Agent: id, Wallet: common.HexToAddress(q.Wallet),
			Owner: common.HexToAddress(q.Owner), Deadline: uint64(deadline)})
	if err != nil {
		return nil, err
	}
	return json.Marshal(agents.Consent{Signature: hexutil.Encode(signature), Deadline: deadline})
}

func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// task submits a task and waits for its end.
func (w *world) task(agent, input string, tags ...string) (repute.Task, []repute.Run) {
	w.t.Helper()
	task, _, err := w.client.Submit(w.t.Context(), standard.Request{Coordinator: agent, Goal: "test",
		Input: json.RawMessage(input), Terms: standard.Terms{Tags: tags}, By: "test"})
	ok(w.t, err)
	w.until("task ended", func() bool {
		task, err = rundb.Task(w.t.Context(), w.db, task.ID)
		ok(w.t, err)
		return task.Status == repute.TaskCompleted || task.Status == repute.TaskFailed ||
			task.Status == repute.TaskRejected
	})
	runs, err := rundb.TaskRuns(w.t.Context(), w.db, task.ID)
	ok(w.t, err)
	return task, runs
}

// completed is task for one that must be; it gives the result of each step of the root run.
func (w *world) completed(agent, input string, tags ...string) map[string]json.RawMessage {
	w.t.Helper()
	task, runs := w.task(agent, input, tags...)
	if task.Status != repute.TaskCompleted {
		for _, r := range runs {
			w.t.Logf("run of %s is %s: %s %s", r.Agent, r.Status, r.Error, r.Reasons)
		}
		w.t.Fatalf("task is %s", task.Status)
	}
	steps, err := rundb.Steps(w.t.Context(), w.db, runs[0].ID)
	ok(w.t, err)
	out := map[string]json.RawMessage{}
	for _, s := range steps {
		out[s.ID] = s.Result
	}
	return out
}

// fails is task for one that must not complete: the reason must hold a text.
func (w *world) fails(agent, input, why string) {
	w.t.Helper()
	task, runs := w.task(agent, input)
	var said strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&said, "%s %s\n", r.Error, r.Reasons)
	}
	if task.Status == repute.TaskCompleted || !strings.Contains(said.String(), why) {
		w.t.Errorf("%s with %s: task is %s, not because of %q but %s", agent, input, task.Status, why, said.String())
	}
}

func into[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	ok(t, json.Unmarshal(raw, &v))
	return v
}

// delegated is the result of a specialist's step in a coordinator's run.
func delegated[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	d := into[struct{ Steps []standard.StepResult }](t, raw)
	if len(d.Steps) != 1 {
		t.Fatalf("%s is no result of a specialist", raw)
	}
	return into[T](t, d.Steps[0].Result)
}
