package agents_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/manifest"
	"repute/orchestrator/agents"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/resolver"
)

// The reporter posts what it measured, under its own key, with the file of the hash.
func TestReporter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.broken.Store(4) // the dry run's request is the first: of the next four one fails
	got := into[agents.Reported](t,
		w.completed(agents.Reporter, `{"agent":"31337:0","requests":4,"tag2":"treasury-ops"}`)["work"])
	if got.Client != w.d.Account(reporterAccount).Address.Hex() || len(got.Requests) != 4 || len(got.Ratings) != 2 {
		t.Fatalf("reported %+v", got)
	}
	list, err := w.d.View().AllFeedback(t.Context(), 0)
	ok(t, err)
	if len(list) != 2 {
		t.Fatalf("the chain has %+v", list)
	}
	stored := list[0]
	if stored.Value.Int64() != 7500 || stored.Decimals != 2 || stored.Client != w.d.Account(reporterAccount).Address ||
		stored.Tag1 != "successRate" || stored.Tag2 != "treasury-ops" {
		t.Errorf("the chain has %+v", stored)
	}
	for _, r := range got.Ratings {
		body, err := resolver.Inline(r.URI, 1<<20)
		ok(t, err)
		if crypto.Keccak256Hash(body) != r.Hash {
			t.Errorf("%s: the file is another than the one of the hash", r.Tag1)
		}
		if file, problems := manifest.ParseFeedback(body); repute.HasErrors(problems) ||
			file.Value != fmt.Sprint(r.Value) || file.Endpoint != w.server.URL+"/work" {
			t.Errorf("%s: file %s has problems %+v", r.Tag1, body, problems)
		}
	}
	w.fails(agents.Reporter, `{"agent":"31337:0","endpoint":"https://elsewhere.example"}`,
		"none that the agent's registration file names")
	w.fails(agents.Reporter, `{"agent":"31337:1"}`, "registration file")
	w.fails(agents.Reporter, `{"agent":"1:1"}`, "not known to the agent")
	w.fails(agents.Reporter, `{"agent":"31337:0","requets":3}`, "unknown field")
}

// The validator answers 100 for what it comes to itself, 0 for what it does not, and
// nothing that is another's, its own, or of another file.
func TestValidator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.d.Batch()
	at := w.server.URL + "/proven/work"
	request := func(owner int, agent uint64, validator int, claimed string) string {
		body := fmt.Sprintf(`{"work":{"http":{"url":%q}},"claimed":%s}`, at, claimed)
		hash := crypto.Keccak256Hash([]byte(body))
		b.ValidationRequest(w.d.Account(owner), w.d.Account(validator).Address, agent, body, hash)
		input, err := json.Marshal(agents.Validation{Request: hash.Hex(), URI: body})
		ok(t, err)
		return string(input)
	}
	right := request(subjectAccount, 0, validatorAccount, `{"of":[40,2],"sum":42}`)
	wrong := request(subjectAccount, 0, validatorAccount, `{"of":[40,2],"sum":43}`)
	others := request(subjectAccount, 0, payeeAccount, `1`)
	own := request(validatorAccount, 1, validatorAccount, `2`)
	var chosen []string
	for _, at = range []string{w.server.URL, w.server.URL + "/provenance", w.server.URL + "/proven/../work",
		w.server.URL + "/proven/%2e%2e/work",
		"http://user@" + strings.TrimPrefix(w.server.URL, "http://") + "/proven/work"} {
		chosen = append(chosen, request(subjectAccount, 0, validatorAccount, `{"of":[40,2],"sum":42}`))
	}
	_, err := b.Mine(t.Context())
	ok(t, err)
	w.index()
	for _, input := range chosen {
		w.fails(agents.Validator, input, "chose that URL and the claim")
	}
	for input, want := range map[string]uint8{right: 100, wrong: 0} {
		got := into[agents.Validated](t, w.completed(agents.Validator, input)["work"])
		stored, err := w.d.View().ValidationStatus(t.Context(), got.Request)
		ok(t, err)
		if got.Response != want || stored.Response != want || stored.Hash != got.Hash || stored.Tag != "re-execution" {
			t.Errorf("answered %d, the chain has %+v", got.Response, stored)
		}
	}
	w.fails(agents.Validator, others, "names validator")
	w.fails(agents.Validator, own, "nobody validates himself")
	w.fails(agents.Validator, `{"request":"0x`+fmt.Sprintf("%064d", 7)+`","uri":"{}"}`, "validation request")
	other := into[agents.Validation](t, json.RawMessage(right))
	other.URI = into[agents.Validation](t, json.RawMessage(wrong)).URI
	input, err := json.Marshal(other)
	ok(t, err)
	w.fails(agents.Validator, string(input), "another file than the one of the hash")
}

// The payer moves what the treasury's caps allow, and names the cap that forbids more.
func TestPayer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	to := w.d.Account(payeeAccount).Address
	balance := func() *big.Int {
		v, err := w.d.Client().BalanceAt(t.Context(), to, nil)
		ok(t, err)
		return v
	}
	before := balance()
	got := into[agents.Paid](t,
		w.completed(agents.Payer, fmt.Sprintf(`{"to":%q,"amount":"90","purpose":"work"}`, to))["work"])
	if paid := new(big.Int).Sub(balance(), before); paid.Int64() != 90 || got.Event.Amount != "90" ||
		got.SpentBefore != "0" {
		t.Errorf("paid %s: %+v", paid, got)
	}
	w.fails(agents.Payer, fmt.Sprintf(`{"to":%q,"amount":"101"}`, to), "cap of 100 per transaction")
	w.fails(agents.Payer, fmt.Sprintf(`{"to":%q,"amount":"61"}`, to), "60 that are left")
	w.fails(agents.Payer, fmt.Sprintf(`{"to":%q,"amount":"-1"}`, to), "is no amount")
	w.fails(agents.Payer, fmt.Sprintf(`{"to":%q,"agent":"31337:0","amount":"1"}`, to), "stands beside an agent")
	w.fails(agents.Payer, fmt.Sprintf(`{"to":%q,"amount":"1","minSuccessRate":50}`, to), "needs a report")
	if paid := new(big.Int).Sub(balance(), before); paid.Int64() != 90 {
		t.Errorf("%s left the treasury", paid)
	}
}

// A task goes over all specialists: an agent is registered with file and wallet, another is
// measured, and paid because it answered.
func TestCoordinator(t *testing.T) {
	t.Parallel()
	for name, served := range map[string][]string{"in the binary": nil, "elsewhere": agents.Names()} {
		t.Run(name, func(t *testing.T) { t.Parallel(); testCoordinator(t, newWorld(t, served...)) })
	}
}

func testCoordinator(t *testing.T, w *world) {
	t.Helper()
	fresh := w.d.Account(newWalletAccount).Address
	steps := w.completed(agents.Coordinator, fmt.Sprintf(`{
		"register": {},
		"describe": {"registration": {"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"New","description":"new","image":"https://new.example/i.png","services":[]}},
		"wallet": {"wallet": %q}}`, fresh))
	made := delegated[agents.Registered](t, steps["register"])
	if made.Agent != w.identity(2).String() || made.Owner != w.d.Account(registrarAccount).Address.Hex() {
		t.Errorf("registered %+v", made)
	}
	has, err := w.d.View().AgentWallet(t.Context(), 2)
	ok(t, err)
	uri, err := w.d.View().TokenURI(t.Context(), 2)
	ok(t, err)
	body, err := resolver.Inline(uri, 1<<20)
	ok(t, err)
	file, _ := manifest.Parse(body)
	if verdict := manifest.Links(file, *w.identity(2)); has != fresh || file.Name != "New" ||
		verdict != repute.LinkLinked {
		t.Errorf("wallet %s, file %s: %v", has, body, verdict)
	}
	w.fails(agents.Payer, `{"agent": "31337:0", "amount": "1"}`, "cannot be compared with the index")
	w.index()
	steps = w.completed(agents.Coordinator,
		`{"report": {"agent": "31337:0", "requests": 2}, "pay": {"agent": "31337:0", "amount": "50", "minSuccessRate": 99}}`)
	if paid := delegated[agents.Paid](t, steps["pay"]); paid.To != w.d.Account(subjectAccount).Address.Hex() {
		t.Errorf("paid %+v", paid)
	}
	other, b := w.d.Account(payeeAccount), w.d.Batch()
	b.SetAgentWallet(w.d.Account(subjectAccount), 0, other) // the index does not have it
	_, err = b.Mine(t.Context())
	ok(t, err)
	w.fails(agents.Payer, `{"agent": "31337:0", "amount": "1"}`, fmt.Sprintf("goes to %s, and the agent's wallet is %s",
		other.Address, w.d.Account(subjectAccount).Address))
	said := into[agents.Conclusion](t, steps["conclude"])
	if len(said.Jobs) != 2 || said.Jobs["report"].Run == said.Jobs["pay"].Run {
		t.Errorf("concluded %+v", said)
	}
	w.fails(agents.Coordinator,
		`{"report": {"agent": "31337:0"}, "pay": {"agent": "31337:1", "amount": "1", "minSuccessRate": 1}}`,
		"of another agent than the one to be paid")
	w.broken.Store(1)
	w.fails(agents.Coordinator,
		`{"report": {"agent": "31337:0"}, "pay": {"agent": "31337:0", "amount": "1", "minSuccessRate": 99}}`,
		"success rate of 0 %")
	w.fails(agents.Coordinator, `{"sing": {}}`, "is no job")
	w.fails(agents.Coordinator, `[]`, "names no job")
}

// Who may create tasks gets no wallet bound to an agent of theirs: the registrar has wallets
// consent to agents alone that it registered, and those alone that the configuration opens.
func TestConsents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fresh, closed := w.d.Account(newWalletAccount).Address, w.d.Account(reporterAccount).Address
	registrar := w.d.Account(registrarAccount)
	b := w.d.Batch()
	b.Register(registrar, "") // agent 2: the registrar's key owns it, but no run registered it
	_, err := b.Mine(t.Context())
	ok(t, err)
	made := into[agents.Registered](t, w.completed(agents.Registrar, `{"action":"register"}`)["work"])
	if made.Agent != w.identity(3).String() {
		t.Fatalf("registered %+v", made)
	}
	w.fails(agents.Registrar, fmt.Sprintf(`{"action":"wallet","agent":%q,"wallet":%q}`, w.identity(2), fresh),
		"was not registered by a run of the registrar")
	w.fails(agents.Registrar, fmt.Sprintf(`{"action":"wallet","agent":%q,"wallet":%q}`, w.identity(0), fresh),
		"is not the registrar's key")
	for _, other := range []common.Address{closed, registrar.Address, w.d.Account(operatorAccount).Address} {
		w.fails(agents.Registrar, fmt.Sprintf(`{"action":"wallet","agent":%q,"wallet":%q}`, made.Agent, other),
			"is of no slug that orchestrator.wallets[].consents lists")
	}
	of := wallet.Consent{ChainID: w.d.Chain().ID, Agent: big.NewInt(3), Wallet: fresh, Owner: registrar.Address,
		Deadline: uint64(w.d.Head().Time.Unix() + 200)}
	for agent, want := range map[string]bool{agents.Registrar: true, agents.Reporter: false, agents.Coordinator: false,
		"stranger": false, "": false} {
		if _, err := w.purse.ConsentOfRun(t.Context(), transaction.Origin{Agent: agent, Run: "r", Task: "t"},
			of); (err == nil) != want {
			t.Errorf("a run of %q got a consent: %v", agent, err)
		}
	}
	w.completed(agents.Registrar, fmt.Sprintf(`{"action":"wallet","agent":%q,"wallet":%q}`, made.Agent, fresh))
	if has, err := w.d.View().AgentWallet(t.Context(), 3); err != nil || has != fresh {
		t.Errorf("wallet %s: %v", has, err)
	}
}
