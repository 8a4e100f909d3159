package control_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
	"repute/indexer"
	"repute/indexer/node"
	"repute/orchestrator/operate"
	"repute/store/query"
	"repute/store/walletdb"
)

// tokens gives the treasury 1,000 units of a token, of which the agent "plain" may move 100
// at once, and registers agent 0, which is a stranger's.
func (h *house) tokens() (token common.Address) {
	h.t.Helper()
	maker, owner, b := h.d.Account(5), h.d.Account(0), h.d.Batch()
	token = crypto.CreateAddress(maker.Address, 0)
	b.Send(maker, nil, common.FromHex(fixtures.TestTokenMetaData.Bin))
	b.Send(maker, &token, fixtures.NewTestToken().PackMint(h.treasury, big.NewInt(1000)))
	b.Send(owner, &h.treasury, bindings.NewOpenFiTreasury().PackSetToken(crypto.Keccak256Hash([]byte("plain")), token,
		true, big.NewInt(100), big.NewInt(250)))
	b.Register(h.d.Account(4), "https://stranger.example/agent.json")
	_, err := b.Mine(h.t.Context())
	ok(h.t, err)
	return token
}

// signed counts the transactions of the keys that the wallet has.
func (h *house) signed() (out [4]uint64) {
	h.t.Helper()
	for i := range out {
		n, err := h.d.Client().NonceAt(h.t.Context(), h.d.Account(i).Address, nil)
		ok(h.t, err)
		out[i] = n
	}
	return out
}

// really does an act by a tool: dry, which changes nothing, then in fact, and then again
// with its key, which is the same act.
func (b toolbox) really(name, arguments string) (act operate.Act) {
	t := b.h.t
	t.Helper()
	var dry, again operate.Act
	rows, before := b.h.rows(), b.h.signed()
	b.into(name, strings.Replace(arguments, "{", `{"dry_run":true,`, 1), &dry)
	if !dry.DryRun || dry.Status != operate.Simulated || dry.ID != "" || b.h.rows() != rows || b.h.signed() != before {
		t.Errorf("%s dry left %s and transactions %v where %s and %v were: %+v", name, b.h.rows(), b.h.signed(), rows,
			before, dry)
	}
	keyed := strings.Replace(arguments, "{", `{"idempotencyKey":"`+name+`",`, 1)
	b.into(name, keyed, &act)
	once := b.h.signed()
	b.into(name, keyed, &again)
	if act.Status != operate.Confirmed || act.AskedBy != "ann" || len(act.Transactions) != 1 || again.ID != act.ID ||
		again.Transactions[0].Hash != act.Transactions[0].Hash || b.h.signed() != once {
		t.Fatalf("%s: %+v, then %+v", name, act, again)
	}
	sent := uint64(0)
	for i, n := range once {
		sent += n - before[i]
	}
	if sent != 1 {
		t.Errorf("%s sent %d transactions", name, sent)
	}
	row, err := walletdb.ReadAct(t.Context(), b.h.db, act.ID)
	ok(t, err)
	if row.Kind != act.Kind || row.By != "ann" || row.Ended.IsZero() || row.Refused != "" || row.Error != "" ||
		len(row.Result) == 0 {
		t.Errorf("%s is stored as %+v", name, row)
	}
	return act
}

// index reads the registries up to the head.
func (h *house) index() {
	h.t.Helper()
	one, err := node.New(h.d.RPCURL(), node.Options{})
	ok(h.t, err)
	c := h.d.Chain()
	pool := node.NewPool([]*node.Node{one}, node.PoolOptions{ChainID: c.ID, DB: h.db})
	defer pool.Close()
	ok(h.t, indexer.NewFollower(h.db, c, pool, indexer.Options{Once: true}).Run(h.t.Context()))
}

// The tools that move tokens, set wallets and rate do so on the chain, once, and what the
// chain says of it is indexed.
func TestToolsActOnTheChain(t *testing.T) {
	t.Parallel()
	h := treasuryHouse(t, worker{slug: "plain"})
	token, b := h.tokens(), h.tools(annsToken)
	payee := common.HexToAddress("0xaa")
	var registered operate.Act
	b.into("openfi_register_identity", `{"slug":"plain"}`, &registered)
	ref, err := repute.ParseAgentRef(registered.AgentID)
	ok(t, err)
	plain := repute.AgentID{ChainID: h.d.Chain().ID, Registry: h.d.Chain().Identity, TokenID: ref.TokenID}

	moved := b.really("openfi_transfer_erc20",
		fmt.Sprintf(`{"agentSlug":"plain","token":%q,"to":%q,"amount":"60","purpose":"fee"}`, token, payee))
	served := b.really("openfi_set_agent_wallet", fmt.Sprintf(`{"slug":"plain","operatorWallet":%q}`,
		h.d.Account(3).Address))
	rated := b.really("openfi_post_feedback",
		fmt.Sprintf(`{"agentId":0,"fromAddress":%q,"value":850,"valueDecimals":2,"tag1":"uptime","tag2":"treasury-ops"}`,
			h.d.Account(2).Address))

	if has := h.tokensOf(token, payee); has != 60 {
		t.Errorf("the payee has %d units", has)
	}
	h.indexed()
	events, err := walletdb.TreasuryEvents(t.Context(), h.db, h.d.Chain().ID, h.treasury,
		crypto.Keccak256Hash([]byte("plain")), 1<<62, 0, 10)
	ok(t, err)
	if e := events[0]; e.Kind != "ERC20Transferred" || e.Tx.Hex() != moved.Transactions[0].Hash ||
		e.Run != crypto.Keccak256Hash([]byte(moved.ID)) {
		t.Errorf("newest event of the treasury: %+v", e)
	}
	h.index()
	a, _, err := query.Agent(t.Context(), h.db, plain, repute.At{Finality: repute.Latest})
	ok(t, err)
	wallet, err := h.d.View().AgentWallet(t.Context(), 1)
	ok(t, err)
	if a.Wallet != h.d.Account(3).Address || wallet != a.Wallet || served.Kind != "wallet" {
		t.Errorf("wallet %s on the chain, %s indexed", wallet, a.Wallet)
	}
	h.ratedOnce(rated)
	b.everyAnswer(token)
}

// everyAnswer asks the tools that were not asked yet, and wants that every tool was: the
// answers about an agent with an onchain identity have the most members.
func (b toolbox) everyAnswer(token common.Address) {
	b.h.t.Helper()
	var asked task
	b.into("openfi_submit_task", `{"goal":"do it","coordinatorSlug":"plain"}`, &asked)
	run := b.h.ended(*asked.Task)
	b.decided()
	for name, arguments := range map[string]string{
		"openfi_list_tasks":              `{"limit":5}`,
		"openfi_list_runs":               `{"taskId":"` + run.TaskID + `"}`,
		"openfi_list_agents":             `{}`,
		"openfi_get_agent":               `{"slug":"plain"}`,
		"openfi_get_trust_summary":       `{"slug":"plain"}`,
		"openfi_recompute_trust_summary": `{"slug":"plain"}`,
		"openfi_get_run":                 `{"runId":"` + run.ID + `"}`,
		"openfi_get_run_receipts":        `{"runId":"` + run.ID + `"}`,
		"openfi_get_treasury_status":     `{}`,
		"openfi_get_treasury_policy":     `{"agentSlug":"plain"}`,
		"openfi_dry_run_call":            payment(1),
		"openfi_execute_call":            payment(1),
		"openfi_dry_run_transfer_erc20": fmt.Sprintf(`{"agentSlug":"plain","token":%q,"to":%q,"amount":"1"}`, token,
			common.HexToAddress("0xaa")),
		"openfi_configure_treasury_policy": `{"agentSlug":"plain","nativePerTxCapWei":"120"}`,
	} {
		b.into(name, arguments, &map[string]any{})
	}
	var log struct {
		Agent struct{ ERC8004AgentID json.RawMessage }
	}
	var manifest struct {
		ERC8004 struct{ AgentID json.RawMessage }
	}
	b.into("openfi_get_agent_log", `{"slug":"plain"}`, &log)
	b.into("openfi_get_agent_manifest", `{"slug":"plain"}`, &manifest)
	if string(log.Agent.ERC8004AgentID) != "1" || string(manifest.ERC8004.AgentID) != "1" {
		b.h.t.Errorf("agent 1 is %s in its log and %s in its manifest", log.Agent.ERC8004AgentID,
			manifest.ERC8004.AgentID)
	}
	for name := range b.tools {
		if !b.answered[name] {
			b.h.t.Errorf("no answer of %s was held against its schema", name)
		}
	}
}

// ratedOnce looks for the one rating of agent 0.
func (h *house) ratedOnce(act operate.Act) {
	h.t.Helper()
	stranger := repute.AgentID{ChainID: h.d.Chain().ID, Registry: h.d.Chain().Identity}
	page, err := query.Feedback(h.t.Context(), h.db, stranger,
		query.FeedbackFilter{Limit: 10, At: repute.At{Finality: repute.Latest}})
	ok(h.t, err)
	onChain, err := h.d.View().AllFeedback(h.t.Context(), 0)
	ok(h.t, err)
	if len(onChain) != 1 || len(page.Items) != 1 {
		h.t.Fatalf("on the chain %+v, indexed %+v", onChain, page.Items)
	}
	if f := page.Items[0]; f.Client != h.d.Account(2).Address || f.Value.Int64() != 850 || f.Decimals != 2 ||
		f.Tag1 != "uptime" || f.Given.TxHash.Hex() != act.Transactions[0].Hash {
		h.t.Errorf("indexed %+v", f)
	}
}

// tokensOf is what an account has of a token.
func (h *house) tokensOf(token, of common.Address) int64 {
	h.t.Helper()
	abi := fixtures.NewTestToken()
	answer, err := h.d.Client().CallContract(h.t.Context(),
		ethereum.CallMsg{To: &token, Data: abi.PackBalanceOf(of)}, nil)
	ok(h.t, err)
	has, err := abi.UnpackBalanceOf(answer)
	ok(h.t, err)
	return has.Int64()
}
