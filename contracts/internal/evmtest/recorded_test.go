package evmtest

import (
	"bytes"
	"encoding/json"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// recording is what the deployed contracts' bytecode logged on a local chain.
type recording struct {
	IdentityRegistry   common.Address `json:"identityRegistry"`
	ReputationRegistry common.Address `json:"reputationRegistry"`
	ValidationRegistry common.Address `json:"validationRegistry"`
	Transactions       []struct {
		Label   string         `json:"label"`
		From    common.Address `json:"from"`
		To      common.Address `json:"to"`
		GasUsed uint64         `json:"gasUsed,string"`
		Logs    []recordedLog  `json:"logs"`
	} `json:"transactions"`
}

type recordedLog struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

// recorded reads a file of the recorded test data, or skips the test.
func recorded(t *testing.T, name string, v any) {
	t.Helper()
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	raw, err := os.ReadFile(filepath.Join(dir, "erc8004", "official-bytecode-logs", name))
	if os.IsNotExist(err) {
		t.Skip("test data absent: set REPUTE_TEST_DATA to the folder that holds " + name)
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replay repeats the recorded transactions against our registries. Calls are
// told by the recording's labels.
type replay struct {
	receiver
	calls map[string][]byte
}

func newReplay(t *testing.T) replay {
	r := replay{receiver: newWorld(t).newReceiver()}
	r.calls = r.identityCalls()
	for label, data := range r.callbackCalls() {
		r.calls[label] = data
	}
	for label, data := range reputationCalls() {
		r.calls[label] = data
	}
	for label, data := range validationCalls() {
		r.calls[label] = data
	}
	return r
}

func (r replay) identityCalls() map[string][]byte {
	deadline := r.in(250)
	consent := r.sign(wallet, r.consent(n(0), wallet.addr, owner.addr, deadline))
	return map[string][]byte{
		"register()":       identityABI.PackRegister(),
		"register(string)": identityABI.PackRegisterURI("ipfs://bafyAgent"),
		"register(string,MetadataEntry[])": identityABI.PackRegisterWithMetadata("data:application/json;base64,e30=",
			[]entry{{MetadataKey: "k1", MetadataValue: []byte{1, 2}}, {MetadataKey: "", MetadataValue: nil}}),
		"register(empty string)": identityABI.PackRegisterURI(""),
		"setAgentURI":            identityABI.PackSetAgentURI(n(0), "https://agent.example/agent.json"),
		"setMetadata":            identityABI.PackSetMetadata(n(0), "category", []byte("DeFi")),
		"setAgentWallet":         identityABI.PackSetAgentWallet(n(0), wallet.addr, deadline, consent),
		"approve":                identityABI.PackApprove(stranger.addr, n(0)),
		"setApprovalForAll":      identityABI.PackSetApprovalForAll(stranger.addr, true),
		"transferFrom clears wallet and approval": identityABI.PackTransferFrom(owner.addr, validator.addr, n(0)),
		"self transferFrom":                       identityABI.PackTransferFrom(owner.addr, owner.addr, n(1)),
		"unsetAgentWallet":                        identityABI.PackUnsetAgentWallet(n(2)),
	}
}

func (r replay) callbackCalls() map[string][]byte {
	run := func(registration []byte, steps ...step) []byte {
		return receiverABI.PackRun(r.identity, registration, steps)
	}
	uri, key := r.setURI("https://callback.example/a.json"), r.setMetadata("k", []byte{1})
	away := r.transfer(stranger.addr)
	return map[string][]byte{
		"contract register() + callback setAgentURI/setMetadata": run(identityABI.PackRegister(), uri, key),
		"contract register() + callback transfer":                run(identityABI.PackRegister(), away),
		"contract register(string) + callback setAgentURI + transfer": run(
			identityABI.PackRegisterURI("https://param.example/a.json"), uri, key, away),
	}
}

func reputationCalls() map[string][]byte {
	most := new(big.Int).Exp(n(10), n(38), nil)
	give := func(value *big.Int, decimals uint8, tag1, tag2 string) []byte {
		return reputationABI.PackGiveFeedback(n(2), value, decimals, tag1, tag2, "https://e.example/x",
			"ipfs://fb", one)
	}
	return map[string][]byte{
		"giveFeedback uptime 99.77":        give(n(9977), 2, "uptime", "week"),
		"giveFeedback negative":            give(n(-32), 1, "tradingYield", "day"),
		"giveFeedback max 1e38 empty tags": give(most, 0, "", ""),
		"giveFeedback min -1e38 dec18":     give(new(big.Int).Neg(most), 18, "x", ""),
		"revokeFeedback":                   reputationABI.PackRevokeFeedback(n(2), 1),
		"appendResponse by third party on revoked": reputationABI.PackAppendResponse(n(2), client.addr, 1,
			"ipfs://resp",
			[32]byte{}),
	}
}

func validationCalls() map[string][]byte {
	return map[string][]byte{
		"validationRequest": validationABI.PackValidationRequest(validator.addr, n(2), "ipfs://req", one),
		"validationResponse soft": validationABI.PackValidationResponse(one, 60, "ipfs://r1", [32]byte{},
			"soft_finality"),
		"validationResponse hard": validationABI.PackValidationResponse(one, 0, "", [32]byte{}, "hard_finality"),
	}
}

// addresses maps the recording's contracts to ours.
func (r replay) addresses(rec recording) map[common.Address]common.Address {
	ours := map[common.Address]common.Address{
		rec.IdentityRegistry:   r.identity,
		rec.ReputationRegistry: r.reputation,
		rec.ValidationRegistry: r.validation,
	}
	for _, tx := range rec.Transactions {
		if _, known := ours[tx.To]; !known {
			ours[tx.To] = r.addr // the only other contract called
		}
	}
	return ours
}

func (r replay) run(rec recording) {
	r.t.Helper()
	ours := r.addresses(rec)
	parties := make(map[common.Address]party)
	for _, p := range []party{owner, client, validator, stranger, wallet} {
		parties[p.addr] = p
	}
	for _, tx := range rec.Transactions {
		data, ok := r.calls[tx.Label]
		if !ok {
			r.t.Fatalf("unknown transaction %q", tx.Label)
		}
		receipt := r.send(parties[tx.From], ours[tx.To], data)
		r.t.Logf("%s: %d gas, recorded %d", tx.Label, receipt.GasUsed, tx.GasUsed)
		r.compare(tx.Label, receipt.Logs, tx.Logs, ours)
	}
}

// compare wants the same logs in the same order, up to the contracts' addresses.
func (r replay) compare(label string, got []*types.Log, want []recordedLog, ours map[common.Address]common.Address) {
	r.t.Helper()
	if len(got) != len(want) {
		r.t.Errorf("%s: %d logs, want %d", label, len(got), len(want))
		return
	}
	for i := range want {
		if g, w := flat(got[i].Address, got[i].Topics, got[i].Data, nil),
			flat(want[i].Address, want[i].Topics, want[i].Data, ours); !bytes.Equal(g, w) {
			r.t.Errorf("%s: log %d\ngot  %x\nwant %x", label, i, g, w)
		}
	}
}

func flat(at common.Address, topics []common.Hash, data []byte, replace map[common.Address]common.Address) []byte {
	b := at.Bytes()
	for _, topic := range topics {
		b = append(b, topic[:]...)
	}
	b = append(b, data...)
	for from, to := range replace {
		b = bytes.ReplaceAll(b, from[:], to[:])
	}
	return b
}

func TestRecordedTransactions(t *testing.T) {
	var rec recording
	recorded(t, "transactions-with-raw-logs.json", &rec)
	if len(rec.Transactions) != 24 {
		t.Fatalf("%d transactions", len(rec.Transactions))
	}
	newReplay(t).run(rec)
}

// refused lists the recorded failing calls, made in the state that the recorded
// transactions leave behind.
func (r replay) refused() map[string]struct {
	from party
	to   common.Address
	data []byte
} {
	type call = struct {
		from party
		to   common.Address
		data []byte
	}
	over := new(big.Int).Add(new(big.Int).Exp(n(10), n(38), nil), n(1))
	rep, id, val := r.reputation, r.identity, r.validation
	give := func(p party, agent int64, value *big.Int, decimals uint8) call {
		return call{p, rep, opinion{value, decimals, "", ""}.pack(n(agent))}
	}
	return map[string]call{
		"over max":                     give(client, 2, over, 0),
		"decimals 19":                  give(client, 2, n(1), 19),
		"self feedback owner":          give(owner, 2, n(1), 0),
		"self feedback operatorForAll": give(stranger, 2, n(1), 0),
		"feedback nonexistent":         give(client, 999, n(1), 0),
		"revoke twice":                 {client, rep, reputationABI.PackRevokeFeedback(n(2), 1)},
		"revoke index 0":               {client, rep, reputationABI.PackRevokeFeedback(n(2), 0)},
		"revoke other":                 {stranger, rep, reputationABI.PackRevokeFeedback(n(2), 1)},
		"append empty uri":             {owner, rep, reputationABI.PackAppendResponse(n(2), client.addr, 1, "", one)},
		"append oob":                   {owner, rep, reputationABI.PackAppendResponse(n(2), client.addr, 99, "u", one)},
		"summary no clients":           {owner, rep, reputationABI.PackGetSummary(n(2), nil, "", "")},
		"setMetadata nonexistent":      {owner, id, identityABI.PackSetMetadata(n(999), "k", nil)},
		"setMetadata reserved":         {owner, id, identityABI.PackSetMetadata(n(2), walletKey, nil)},
		"setMetadata not auth":         {client, id, identityABI.PackSetMetadata(n(2), "k", nil)},
		"setAgentURI nonexistent":      {owner, id, identityABI.PackSetAgentURI(n(999), "u")},
		"tokenURI nonexistent":         {owner, id, identityABI.PackTokenURI(n(999))},
		"totalSupply":                  {owner, id, common.FromHex("18160ddd")},
		"validation duplicate": {owner, val,
			validationABI.PackValidationRequest(validator.addr, n(2), "", one)},
		"validation zero validator": {owner, val,
			validationABI.PackValidationRequest(common.Address{}, n(2), "", two)},
		"validation not owner": {client, val,
			validationABI.PackValidationRequest(validator.addr, n(2), "", two)},
		"validation unknown":       {validator, val, respond(two, 1, "")},
		"validation not validator": {client, val, respond(one, 1, "")},
		"validation 101":           {validator, val, respond(one, 101, "")},
	}
}

// expected turns the recording's wording of a revert into its reason.
func expected(recorded string) string {
	if s, ok := strings.CutPrefix(recorded, "reverted with reason string '"); ok {
		return strings.TrimSuffix(s, "'")
	}
	if strings.Contains(recorded, "function selector was not recognized") {
		return ""
	}
	return recorded
}

func TestRecordedReadsAndReverts(t *testing.T) {
	var rec recording
	recorded(t, "transactions-with-raw-logs.json", &rec)
	var answers map[string]json.RawMessage
	recorded(t, "reads-and-reverts.json", &answers)
	r := newReplay(t)
	r.run(rec)
	reverts := 0
	for name, c := range r.refused() {
		var want string
		if err := json.Unmarshal(answers["rev_"+name], &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.wantRevert(expected(want), c.from, c.to, c.data)
		reverts++
	}
	if reverts != 23 {
		t.Errorf("%d reverts", reverts)
	}
	for name, id := range map[string]int64{"cbUri": 4, "cbXfer": 5, "cbBoth": 6} {
		r.compareAgent(name, n(id), answers[name], r.addresses(rec))
	}
	r.compareValidation(answers)
	if r.agentWallet(n(0)) != (common.Address{}) || r.agentWallet(n(1)) != (common.Address{}) ||
		string(r.metadata(n(0), "category")) != "DeFi" || len(r.metadata(n(0), walletKey)) != 0 {
		t.Error("state after the transfers differs")
	}
}

func (r replay) compareAgent(name string, id *big.Int, raw json.RawMessage, ours map[common.Address]common.Address) {
	r.t.Helper()
	var want struct {
		URI    string         `json:"uri"`
		Owner  common.Address `json:"owner"`
		Wallet common.Address `json:"wallet"`
	}
	r.check(json.Unmarshal(raw, &want))
	mapped := func(a common.Address) common.Address {
		if our, ok := ours[a]; ok {
			return our
		}
		return a
	}
	if r.uri(id) != want.URI || r.ownerOf(id) != mapped(want.Owner) || r.agentWallet(id) != mapped(want.Wallet) {
		r.t.Errorf("%s: uri %q, owner %s, wallet %s", name, r.uri(id), r.ownerOf(id), r.agentWallet(id))
	}
}

func (r replay) compareValidation(answers map[string]json.RawMessage) {
	r.t.Helper()
	var want []string
	r.check(json.Unmarshal(answers["valFinal"], &want))
	s := r.status(one)
	if s.ValidatorAddress.Hex() != want[0] || s.AgentId.String() != want[1] ||
		n(int64(s.Response)).String() != want[2] ||
		common.Hash(s.ResponseHash).Hex() != want[3] || s.Tag != want[4] {
		r.t.Errorf("validation %+v, want %v", s, want)
	}
	for name, tag := range map[string]string{"valSummary": "", "valSummarySoft": "soft_finality"} {
		r.check(json.Unmarshal(answers[name], &want))
		got := r.validations(n(2), tag)
		if n(int64(got[0])).String() != want[0] || n(int64(got[1])).String() != want[1] {
			r.t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
