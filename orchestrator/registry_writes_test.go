package orchestrator

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts/bindings"
	"repute/internal/pgtest"
	"repute/orchestrator/journal"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// The registries of the tests, and the agent that runs: number 22.
var (
	identityAt, reputationAt, validationAt = common.HexToAddress("0x02"), common.HexToAddress("0x03"),
		common.HexToAddress("0x04")
	own, another = big.NewInt(22), big.NewInt(23)
)

// Who owns the agents of the tests: two are in the same hands.
var (
	owner, stranger = common.HexToAddress("0xa1"), common.HexToAddress("0xb1")
	owners          = map[uint64]common.Address{22: owner, 23: stranger, 24: owner, 25: common.HexToAddress("0xc1")}
)

// requests of validations, by the agent they are about.
var requests = map[uint64]common.Hash{22: {22}, 23: {23}, 24: {24}}

func tokenOf(n uint64) (id repute.TokenID) {
	id.SetUint64(n)
	return id
}

func idOf(n uint64) *repute.AgentID {
	return &repute.AgentID{ChainID: 7, Registry: identityAt, TokenID: tokenOf(n)}
}

// runner is a run of agent 22, with an index of four agents and three requests.
func runner(t *testing.T) *work {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := chaindb.AddChain(t.Context(), db, repute.Chain{ID: 7, Name: "seven", Identity: identityAt,
		Reputation: reputationAt, Validations: []common.Address{validationAt}, StartBlock: 1}); err != nil {
		t.Fatal(err)
	}
	parent, err := chaindb.Cursor(t.Context(), db, 7)
	if err != nil {
		t.Fatal(err)
	}
	block := repute.Block{Number: 1, Parent: parent.Hash, Hash: common.Hash{1}, Time: time.Unix(1_750_000_000, 0).UTC()}
	batch := eventdb.Batch{ChainID: 7, Parent: parent, To: block, Blocks: []repute.Block{block}}
	add := func(at common.Address, e repute.Event) {
		log := types.Log{Address: at, Topics: []common.Hash{{1}}, BlockNumber: 1, BlockHash: block.Hash,
			Index: uint(len(batch.Records))}
		batch.Records = append(batch.Records, repute.Record{Log: log, Time: block.Time, Event: e})
	}
	for n, by := range owners {
		add(identityAt, repute.Transfer{To: by, TokenID: tokenOf(n)})
		add(identityAt, repute.Registered{TokenID: tokenOf(n), Owner: by})
	}
	for n, hash := range requests {
		add(validationAt, repute.ValidationRequest{Validator: owner, TokenID: tokenOf(n), RequestHash: hash})
	}
	if err := eventdb.Apply(t.Context(), db, batch); err != nil {
		t.Fatal(err)
	}
	w := &work{e: &Engine{db: db,
		o: Options{Registries: []safety.Registries{{ChainID: 7, Identity: identityAt, Reputation: reputationAt,
			Validations: []common.Address{validationAt}}}}}}
	w.module.Agent = idOf(22)
	return w
}

// TestNobodyRatesItsOwn: neither through a second wallet, nor by a validation that it asked
// itself for, nor through an agent that it gives the work to.
func TestNobodyRatesItsOwn(t *testing.T) {
	t.Parallel()
	mine := runner(t)
	below := &work{e: mine.e, parent: mine, module: repute.Module{Agent: idOf(25)}}
	nobody := &work{e: mine.e, parent: mine}
	free := &work{e: mine.e}
	feedback := func(n uint64) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: reputationAt,
			Data: bindings.NewReputationRegistry().PackGiveFeedback(new(big.Int).SetUint64(n), big.NewInt(100), 0, "",
				"", "",
				"", [32]byte{})}
	}
	response := func(hash common.Hash) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: validationAt,
			Data: bindings.NewValidationRegistry().PackValidationResponse(hash, 100,
				"", [32]byte{}, "")}
	}
	uri := func(n uint64) transaction.Tx {
		return transaction.Tx{ChainID: 7, Target: identityAt,
			Data: bindings.NewIdentityRegistry().PackSetAgentURI(new(big.Int).SetUint64(n), "")}
	}
	for name, c := range map[string]struct {
		by   *work
		tx   transaction.Tx
		says string // empty: it is allowed
	}{
		"feedback on itself":                      {mine, feedback(22), "its own"},
		"feedback on another":                     {mine, feedback(23), ""},
		"feedback on an agent of the same owner":  {mine, feedback(24), "controlled by"},
		"feedback on one that nobody knows":       {mine, feedback(99), "not indexed"},
		"feedback of a helper on its principal":   {below, feedback(22), "works for"},
		"feedback of a helper on a sister":        {below, feedback(24), "controlled by"},
		"feedback of a helper on another":         {below, feedback(23), ""},
		"feedback of a nameless helper":           {nobody, feedback(22), "works for"},
		"feedback of who has no identity":         {free, feedback(22), ""},
		"answer to a request about itself":        {mine, response(requests[22]), "its own"},
		"answer about an agent of the same owner": {mine, response(requests[24]), "controlled by"},
		"answer about another":                    {mine, response(requests[23]), ""},
		"answer to a request that nobody knows":   {mine, response(common.Hash{99}), "cannot be told"},
		"answer of a helper about its principal":  {below, response(requests[22]), "works for"},
		"file of an agent of the same owner":      {mine, uri(24), ""},
		"file of its principal":                   {below, uri(22), "works for"},
	} {
		err := c.by.records(c.tx.ChainID).MayTouch(t.Context(), &c.tx)
		if c.says == "" && err != nil || c.says != "" &&
			(!errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// TestRecordsKept: a contract between the agent and the registry hides nothing.
func TestRecordsKept(t *testing.T) {
	t.Parallel()
	w := runner(t)
	revoked := func(agent *big.Int, index int64) types.Log {
		return types.Log{Address: reputationAt,
			Topics: []common.Hash{crypto.Keccak256Hash([]byte("FeedbackRevoked(uint256,address,uint64)")),
				common.BigToHash(agent),
				common.BytesToHash(stranger[:]), common.BigToHash(big.NewInt(index))}}
	}
	answered := func(agent int64) types.Log {
		e := bindings.NewValidationRegistry().GetABI().Events["ValidationResponse"]
		data, err := e.Inputs.NonIndexed().Pack(uint8(90), "", [32]byte{}, "")
		if err != nil {
			t.Fatal(err)
		}
		return types.Log{Address: validationAt, Topics: []common.Hash{e.ID, common.BytesToHash(stranger[:]),
			common.BigToHash(big.NewInt(agent)), {2}}, Data: data}
	}
	for name, c := range map[string]struct {
		log  types.Log
		kept bool
	}{
		"revoked of its own":       {revoked(own, 1), false},
		"revoked of another":       {revoked(another, 1), true},
		"its number, as another's": {revoked(another, own.Int64()), true},
		"an answer about another":  {answered(23), true},
		"an answer about a sister": {answered(24), false},
		"an answer about nobody's": {answered(99), false},
		"feedback on itself": {types.Log{Address: reputationAt, Topics: []common.Hash{{1}, common.BigToHash(own)}},
			false},
		"its own transfer": {types.Log{Address: identityAt,
			Topics: []common.Hash{{1}, {2}, {3}, common.BigToHash(own)}}, false},
		"feedback on others": {types.Log{Address: reputationAt,
			Topics: []common.Hash{{1}, common.BigToHash(another)}}, true},
		"another contract": {types.Log{Address: stranger, Topics: []common.Hash{{1}, common.BigToHash(own)}}, true},
	} {
		logs := journal.JSON([]types.Log{c.log})
		receipts := []repute.Receipt{{Kind: repute.CallTransaction, Chain: 7, Done: true,
			Result: journal.JSON(transaction.Sent{OK: true, Result: logs})}}
		if broken, err := safety.Broken(t.Context(), receipts, w.records); err != nil || (broken == "") != c.kept {
			t.Errorf("%s: %q, %v", name, broken, err)
		}
	}
}

// arguments are zeros, but for the agent's id.
func arguments(m abi.Method, id *big.Int) (out []any, concerns bool) {
	for _, in := range m.Inputs {
		switch {
		case in.Name == "agentId" || in.Name == "tokenId":
			out, concerns = append(out, id), true
		case in.Type.GetType() == reflect.TypeFor[*big.Int]():
			out = append(out, new(big.Int))
		default:
			out = append(out, reflect.Zero(in.Type.GetType()).Interface())
		}
	}
	return out, concerns
}

// TestMayTouch calls every function of the registries that changes something: those that
// name the agent that runs are refused, the same for another agent is not.
func TestMayTouch(t *testing.T) {
	t.Parallel()
	w, tried := runner(t), 0
	for at, of := range map[common.Address]abi.ABI{
		identityAt:   bindings.NewIdentityRegistry().GetABI(),
		reputationAt: bindings.NewReputationRegistry().GetABI(),
		validationAt: bindings.NewValidationRegistry().GetABI(),
	} {
		for _, m := range of.Methods {
			for _, id := range []*big.Int{own, another} {
				values, concerns := arguments(m, id)
				if m.IsConstant() || !concerns {
					continue
				}
				data, err := m.Inputs.Pack(values...)
				if err != nil {
					t.Fatalf("%s: %v", m.Sig, err)
				}
				data = append(slices.Clone(m.ID), data...)
				err = w.records(7).MayTouch(t.Context(), &transaction.Tx{ChainID: 7, Target: at, Data: data})
				if mine := id == own; mine != errors.Is(err, repute.ErrInvalid) {
					t.Errorf("%s of agent %s: %v", m.Sig, id, err)
				}
				if err := w.records(7).MayTouch(t.Context(),
					&transaction.Tx{ChainID: 7, Target: at, Data: data[:len(m.ID)+5]}); err == nil {
					t.Errorf("%s, cut off, is allowed", m.Sig)
				}
				if err := w.records(8).MayTouch(t.Context(), &transaction.Tx{ChainID: 8, Target: at, Data: data}); err != nil {
					t.Errorf("%s on another chain: %v", m.Sig, err)
				}
				tried++
			}
		}
	}
	if tried < 20 {
		t.Errorf("tried %d functions", tried)
	}
	all := bindings.NewIdentityRegistry().PackSetApprovalForAll(common.HexToAddress("0x05"), true)
	if err := w.records(7).MayTouch(t.Context(), &transaction.Tx{ChainID: 7, Target: identityAt, Data: all}); err == nil {
		t.Error("a hand over all of its identities is allowed")
	}
}

// TestRecordsWithoutLogs lets a transaction prove nothing whose logs were too many to keep.
func TestRecordsWithoutLogs(t *testing.T) {
	w := &work{e: &Engine{o: Options{Registries: []safety.Registries{{ChainID: 7, Identity: identityAt,
		Reputation: reputationAt}}}}, module: repute.Module{Agent: idOf(22)}}
	// wallet drops logs over 256 KiB
	receipts := []repute.Receipt{{Kind: repute.CallTransaction, Chain: 7, Done: true,
		Result: journal.JSON(transaction.Sent{OK: true})}}
	if broken, err := safety.Broken(t.Context(), receipts, w.records); err != nil || broken == "" {
		t.Errorf("nobody saw the logs, and nothing is said to be broken: %v", err)
	}
}
