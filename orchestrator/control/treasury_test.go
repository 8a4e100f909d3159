package control_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/contracts/bindings"
	"repute/devnet"
	"repute/indexer"
	"repute/indexer/node"
	"repute/orchestrator"
	"repute/orchestrator/control"
	"repute/orchestrator/control/treasury"
	"repute/orchestrator/operate"
	"repute/orchestrator/safety"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/store/chaindb"
	"repute/store/walletdb"
)

// treasuryHouse is a house with a wallet on a chain, whose treasury holds 1,000 wei, of
// which the agent "plain" may move 100 at once. Its events are indexed until the test ends.
func treasuryHouse(t *testing.T, agents ...orchestrator.Module) *house {
	t.Helper()
	d, err := devnet.Start(t.Context(), devnet.Options{Accounts: 6})
	ok(t, err)
	t.Cleanup(func() { _ = d.Close() })
	owner, operator, b, abi := d.Account(0), d.Account(1), d.Batch(), bindings.NewOpenFiTreasury()
	at := crypto.CreateAddress(owner.Address, 0)
	b.Send(owner, nil, append(common.FromHex(bindings.OpenFiTreasuryMetaData.Bin),
		abi.PackConstructor(owner.Address)...))
	b.Pay(owner, at, big.NewInt(1000))
	plain := crypto.Keccak256Hash([]byte("plain"))
	b.Send(owner, &at, abi.PackSetPolicy(plain, true, operator.Address, big.NewInt(100), big.NewInt(250),
		big.NewInt(0)))
	b.Send(owner, &at, abi.PackSetCall(plain, common.HexToAddress("0xaa"), [4]byte{}, true))
	_, err = b.Mine(t.Context())
	ok(t, err)
	d.SetPeriod(20 * time.Millisecond)
	t.Cleanup(func() { d.SetPeriod(0) })
	key := func(a devnet.Account) keys.Config {
		path := filepath.Join(t.TempDir(), "key")
		ok(t, os.WriteFile(path, []byte(hex.EncodeToString(crypto.FromECDSA(a.Key))), 0o600))
		return keys.Config{KeyFile: path}
	}
	c := d.Chain()
	h := newHouse(t, func(o *options) {
		one, err := node.New(d.RPCURL(), node.Options{})
		ok(t, err)
		pool := node.NewPool([]*node.Node{one}, node.PoolOptions{ChainID: c.ID})
		t.Cleanup(pool.Close)
		ok(t, chaindb.WatchTreasury(t.Context(), o.DB, c.ID, repute.WatchedContract{Address: at, From: 1}))
		f := indexer.NewFollower(o.DB, repute.Chain{ID: c.ID}, pool, indexer.Options{Poll: 10 * time.Millisecond})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = f.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
		w, err := wallet.Open(o.DB,
			wallet.Config{Chains: []wallet.ChainConfig{{ChainID: c.ID, RPC: []string{d.RPCURL()}, Treasury: at,
				Registries: safety.Registries{Identity: c.Identity, Reputation: c.Reputation}, Operator: key(operator),
				Owner:         key(owner),
				Identities:    map[string]keys.Config{"plain": key(d.Account(2)), "second": key(d.Account(3))},
				Confirmations: 1,
				Poll:          10 * time.Millisecond}}})
		ok(t, err)
		t.Cleanup(w.Close)
		o.Operator = operate.New(o.DB, w, operate.Options{Policy: o.Policy, Lenient: true, TrustChain: c.ID,
			ExecutionChain: c.ID, PublicURL: o.PublicURL, Wait: 30 * time.Second})
		o.on.Limits.Timeout = time.Minute
	}, agents...)
	h.d, h.treasury = d, at
	return h
}

// indexed waits until the treasury's events are indexed up to the present head.
func (h *house) indexed() {
	h.t.Helper()
	head := h.d.Head().Number
	h.until("the treasury's events are indexed", func() bool {
		at, err := walletdb.ReadTreasury(h.t.Context(), h.db, h.d.Chain().ID, h.treasury)
		return err == nil && at.Cursor.Number >= head
	})
}

// A change of a policy can be looked at before it is signed: decoded, with nothing stored or
// sent. A slug that no agent has is refused with those that there are.
func TestPolicyRoute(t *testing.T) {
	h := treasuryHouse(t, worker{slug: "plain"})
	const path, lower = "/v1/treasury/policies/plain", `{"nativePerTxCapWei":"90"}`
	rows, signed := h.rows(), h.signed()
	var dry, done, again operate.Act
	h.into(h.ann(http.MethodPut, path+"?dry_run=true", lower), 200, &dry)
	if len(dry.Transactions) != 1 || len(dry.Transactions[0].Calls) != 1 || dry.Status != operate.Simulated ||
		!dry.DryRun || dry.ID != "" {
		t.Fatalf("dry run %+v", dry)
	}
	if c := dry.Transactions[0].Calls[0]; !slices.ContainsFunc(c.Arguments,
		func(a contracts.Argument) bool { return a.Name == "nativePerTxCapWei" && a.Value == "90" }) {
		t.Errorf("the dry run shows %+v", c)
	}
	if r := h.ann(http.MethodPut, path, `{"windowDurationSeconds":0}`); r.status != 400 ||
		!strings.Contains(string(r.body), `"field":"windowDurationSeconds"`) {
		t.Errorf("a window of 0: %d %s", r.status, r.body)
	}
	if r := h.ann(http.MethodPut, "/v1/treasury/policies/plane", lower); r.status != 404 ||
		!strings.Contains(string(r.body), "plane") || !strings.Contains(string(r.body), "one of plain;") {
		t.Errorf("a slug of nobody: %d %s", r.status, r.body)
	}
	if h.rows() != rows || h.signed() != signed {
		t.Errorf("%s and transactions %v, before %s and %v", h.rows(), h.signed(), rows, signed)
	}
	h.into(h.ann(http.MethodPut, path, lower, "Idempotency-Key", "lower"), 200, &done)
	h.into(h.ann(http.MethodPut, path, lower, "Idempotency-Key", "lower"), 200, &again)
	if done.Status != operate.Confirmed || again.ID != done.ID {
		t.Errorf("done %+v, again %+v", done, again)
	}
}

func TestTreasuryRoutes(t *testing.T) {
	h := treasuryHouse(t, worker{slug: "plain"})
	var s operate.TreasuryStatus
	h.into(h.call(http.MethodGet, "/v1/treasury/status", ""), 200, &s)
	var p operate.TreasuryPolicy
	h.into(h.call(http.MethodGet, "/v1/treasury/policies/plain", ""), 200, &p)
	if s.Balance != "1000" || !p.Active || p.NativePerTxCapWei != "100" {
		t.Fatalf("status %+v, policy %+v", s, p)
	}
	const pay = `{"agentSlug":"plain","target":"0x00000000000000000000000000000000000000aa","value":"%s"}`
	if r := h.call(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, "40")); r.status != 401 {
		t.Errorf("without a token: %d", r.status)
	}
	var dry, done, again, put operate.Act
	h.into(h.ann(http.MethodPost, "/v1/treasury/calls?dry_run=true", fmt.Sprintf(pay, "40")), 200, &dry)
	h.into(h.ann(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, "40"), "Idempotency-Key", "k"), 200, &done)
	h.into(h.ann(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, "40"), "Idempotency-Key", "k"), 200, &again)
	if dry.Status != operate.Simulated || dry.ID != "" || done.Status != operate.Confirmed || done.AskedBy != "ann" ||
		again.ID != done.ID || done.Transactions[0].Hash == "" {
		t.Fatalf("dry %+v, done %+v, again %+v", dry, done, again)
	}
	if r := h.ann(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, "101")); r.status != 400 ||
		!strings.Contains(string(r.body), "over the cap of 100") || !strings.Contains(string(r.body), "/v1/acts/act_") {
		t.Errorf("over the cap: %d %s", r.status, r.body)
	}
	h.into(h.ann(http.MethodPut, "/v1/treasury/policies/plain", `{"nativePerTxCapWei":"120"}`), 200, &put)
	h.into(h.call(http.MethodGet, "/v1/treasury/policies/plain", ""), 200, &p)
	if put.Status != operate.Confirmed || p.NativePerTxCapWei != "120" || p.NativeWindowCapWei != "250" ||
		p.NativeWindowSpentWei != "40" {
		t.Errorf("put %+v, policy %+v", put, p)
	}
	var list treasury.ActList
	h.into(h.call(http.MethodGet, "/v1/acts?limit=2", ""), 200, &list)
	if len(list.Acts) != 2 || list.Acts[0].ID != put.ID || list.Acts[1].Status != operate.Refused || list.Next == "" {
		t.Fatalf("acts %+v", list)
	}
	h.into(h.call(http.MethodGet, "/v1/acts?limit=2&cursor="+list.Next, ""), 200, &list)
	if len(list.Acts) != 1 || list.Acts[0].ID != done.ID {
		t.Errorf("second page %+v", list)
	}
	h.into(h.call(http.MethodGet, "/v1/acts/"+done.ID, ""), 200, &again)
	for path, body := range map[string]string{"/v1/treasury/calls?dry_run=maybe": fmt.Sprintf(pay, "1"),
		"/v1/treasury/calls": `{"agentSlug":"plain","amount":"1"}`, "/v1/treasury/transfers": `{"agentSlug":"plain"}`,
		"/v1/feedback":            `{"agentId":"1","fromAddress":"0x00000000000000000000000000000000000000aa"}`,
		"/v1/agents/plain/wallet": `{"operatorWallet":"x"}`, "/v1/identities": `{"slug":"No"}`} {
		if r := h.ann(http.MethodPost, path, body); r.status != 400 && r.status != 409 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	var identity operate.Act
	h.into(h.ann(http.MethodPost, "/v1/identities", `{"slug":"plain"}`), 200, &identity)
	var a control.TaskAgent
	h.into(h.call(http.MethodGet, "/v1/agents/plain", ""), 200, &a)
	if identity.AgentID == "" || a.AgentID != identity.AgentID {
		t.Errorf("registered %+v, agent %+v", identity, a)
	}
}

// What the treasury says is shown with the run or act that it is of.
func TestTreasuryEvents(t *testing.T) {
	h := treasuryHouse(t, worker{slug: "plain"})
	task := h.submit(`{"goal":"do it","coordinatorSlug":"plain"}`)
	h.waits(task.RunID, "the run ends", func(r control.Run) bool { return r.EndedAt != nil })
	var ofRun, ofNone operate.Act
	const pay = `{"agentSlug":"plain","target":"0x00000000000000000000000000000000000000aa","value":"40","purpose":"fee","runId":"%s"}`
	h.into(h.ann(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, task.RunID)), 200, &ofRun)
	h.into(h.ann(http.MethodPost, "/v1/treasury/calls", fmt.Sprintf(pay, "")), 200, &ofNone)
	h.indexed()
	var run control.Run
	h.into(h.call(http.MethodGet, "/v1/runs/"+task.RunID, ""), 200, &run)
	if len(run.Treasury) != 1 || run.Treasury[0].Kind != "NativeExecuted" ||
		run.Treasury[0].Transaction != ofRun.Transactions[0].Hash || run.Treasury[0].Finality == "" ||
		run.Treasury[0].Block != ofRun.Transactions[0].Block {
		t.Errorf("of the run: %+v", run.Treasury)
	}
	var act treasury.ActWithEvents
	h.into(h.call(http.MethodGet, "/v1/acts/"+ofNone.ID, ""), 200, &act)
	if len(act.Treasury) != 1 || act.Treasury[0].RunKey == "" || act.Treasury[0].RunKey != act.Treasury[0].TaskKey ||
		act.Status != operate.Confirmed {
		t.Errorf("of the act: %+v", act)
	}
	var list treasury.TreasuryEventList
	h.into(h.call(http.MethodGet, "/v1/treasury/events?agent=plain&limit=2", ""), 200, &list)
	if len(list.Events) != 2 || list.Next == "" || list.Events[0].Transaction != ofNone.Transactions[0].Hash {
		t.Fatalf("events %+v", list)
	}
	h.into(h.call(http.MethodGet, "/v1/treasury/events?agent=plain&limit=2&cursor="+list.Next, ""), 200, &list)
	if len(list.Events) != 2 || list.Events[0].Kind != "CallAllowed" || list.Events[1].Kind != "PolicySet" {
		t.Errorf("the last page %+v", list)
	}
	var now treasury.TreasuryNow
	h.into(h.call(http.MethodGet, "/v1/treasury/status", ""), 200, &now)
	if now.Index == nil || now.Index.Missing != 0 || now.Index.To == 0 || now.Balance != "920" {
		t.Errorf("status %+v", now)
	}
	if c := now.Index.Compared; c == nil || c.Block != now.Index.To || c.Policies != 1 || c.Windows != 1 ||
		len(c.Differ) > 0 {
		t.Fatalf("compared %+v %s", c, now.Index.NotCompared)
	}
	for kind, says := range map[string]string{"NativeExecuted": "payments of plain in native coin: the treasury counts 80", "PolicySet": "policy of plain"} {
		_, err := h.db.Pool().Exec(t.Context(), "delete from treasury_events where kind = $1", kind)
		ok(t, err)
		h.until("another block", func() bool { return h.d.Head().Number > now.Index.To })
		h.indexed()
		h.into(h.call(http.MethodGet, "/v1/treasury/status", ""), 200, &now)
		if c := now.Index.Compared; c == nil || !strings.Contains(strings.Join(c.Differ, "\n"), says) {
			t.Errorf("without %s: %+v %s", kind, c, now.Index.NotCompared)
		}
	}
}

// Who has no token, or one that is not known, approves nothing.
func TestApprovalByTheWrongKey(t *testing.T) {
	h := newHouse(t, nil, worker{slug: "plain"})
	dear := h.submit(`{"goal":"dear one"}`)
	h.waits(dear.RunID, "run waits", awaits)
	for what, header := range map[string][]string{"none": nil,
		"another":      {"Authorization", "Bearer another-token-that-is-long"},
		"in X-API-Key": {"X-API-Key", "another-token-that-is-long"},
		"as basic":     {"Authorization", "Basic " + annsToken}} {
		if r := h.call(http.MethodPost, "/v1/runs/"+dear.RunID+"/approval", `{"subject":"policy","approved":true}`,
			header...); r.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	h.waits(dear.RunID, "run still waits", func(r control.Run) bool {
		return awaits(r) && len(r.Approvals) == 0 &&
			len(r.Treasury) == 0
	})
}

func TestNoWallet(t *testing.T) {
	h := newHouse(t, nil)
	for _, path := range []string{"/v1/treasury/status", "/v1/treasury/policies/plain", "/v1/treasury/events",
		"/v1/acts", "/v1/acts/act_1"} {
		if r := h.call(http.MethodGet, path, ""); r.status != 404 ||
			!strings.Contains(string(r.body), "not configured") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

// A message of a chat becomes one task, however often it is delivered.
func TestIngress(t *testing.T) {
	h := newHouse(t, nil, worker{slug: "plain"})
	const message = `{"goal":"do it","channel":"telegram","sender":"ann","messageId":"17"}`
	if r := h.call(http.MethodPost, "/v1/ingress/openclaw/task", message, "X-API-Key",
		"another-token-that-is-wrong"); r.status != 401 {
		t.Fatalf("with a wrong key: %d", r.status)
	}
	var first, again control.Ingress
	h.into(h.call(http.MethodPost, "/v1/ingress/openclaw/task", message, "X-API-Key", annsToken), http.StatusCreated,
		&first)
	h.into(h.call(http.MethodPost, "/v1/ingress/openclaw/task", message, "X-API-Key", annsToken), http.StatusOK, &again)
	if first.TaskID == "" || first.RunID == "" || again.TaskID != first.TaskID || first.Run != "/v1/runs/"+first.RunID {
		t.Fatalf("first %+v, again %+v", first, again)
	}
	h.waits(first.RunID, "the run ends", func(r control.Run) bool { return r.EndedAt != nil })
	var list control.ReceiptList
	h.into(h.call(http.MethodGet, first.Receipts, ""), 200, &list)
	if len(list.Receipts) == 0 {
		t.Fatal("no receipts")
	}
	var one control.Receipt
	h.into(h.call(http.MethodGet, fmt.Sprintf("%s/%d", first.Receipts, list.Receipts[0].ID), ""), 200, &one)
	if one.Kind != list.Receipts[0].Kind {
		t.Errorf("receipt %+v, wanted %+v", one, list.Receipts[0])
	}
	if r := h.call(http.MethodGet, first.Receipts+"/999999", ""); r.status != 404 {
		t.Errorf("no such receipt: %d", r.status)
	}
	if r := h.ann(http.MethodPost, "/v1/ingress/openclaw/task", `{"goal":""}`); r.status != 400 {
		t.Errorf("no goal: %d", r.status)
	}
}
