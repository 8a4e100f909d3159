package indexer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/prometheus/client_golang/prometheus"

	"repute"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/query"
)

// stranger is a validation contract that is on nobody's list.
var stranger = common.HexToAddress("0x57a46e4000000000000000000000000000000001")

func elsewhere(logs []types.Log) []types.Log {
	for i := range logs {
		logs[i].Address = stranger
	}
	return logs
}

// judged gives the logs of a request and its answer.
func judged(c *rpctest.Chain, hash byte, response uint8) []types.Log {
	return c.Tx(repute.ValidationRequest{Validator: rpctest.Account(3), TokenID: rpctest.Token(0),
		RequestHash: common.Hash{hash}},
		repute.ValidationResponse{Validator: rpctest.Account(3), TokenID: rpctest.Token(0),
			RequestHash: common.Hash{hash},
			Response:    response})
}

func validations(t *testing.T, db *store.DB, c *rpctest.Chain) map[common.Address]int {
	t.Helper()
	page, err := query.Validations(t.Context(), db, repute.AgentID{ChainID: 31337, Registry: c.Identity,
		TokenID: rpctest.Token(0)}, query.ValidationFilter{Limit: 100, At: repute.At{Finality: repute.Latest}})
	if err != nil {
		t.Fatal(err)
	}
	found := map[common.Address]int{}
	for _, v := range page.Items {
		found[v.Contract]++
		if v.ContractTrusted != (v.Contract == c.Validation) {
			t.Errorf("%s trusted: %t", v.Contract, v.ContractTrusted)
		}
	}
	return found
}

func TestValidationsOfAnyContract(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	broken := elsewhere(judged(c, 9, 1)[:1])
	broken[0].Data = broken[0].Data[:5]
	shouting := elsewhere(c.Register(7, rpctest.Account(1), "x")) // not its business
	c.Mine(c.Register(0, rpctest.Account(1), ""), judged(c, 1, 80), elsewhere(judged(c, 2, 100)), broken, shouting)
	c.Mine(elsewhere(judged(c, 3, 255)[1:])) // out of range, and for nothing
	for _, anyone := range []bool{true, false} {
		db, reg := openStore(t), prometheus.NewRegistry()
		catchUp(t, follow(t, db, c, Options{AnyValidation: anyone, Metrics: NewMetrics(reg)}))
		found := validations(t, db, c)
		want := map[bool]int{true: 1, false: 0}[anyone]
		if found[c.Validation] != 1 || found[stranger] != want {
			t.Errorf("any %t: %v", anyone, found)
		}
		if n := metric(t, reg, "repute_foreign_logs_total"); n != float64(want) {
			t.Errorf("any %t: %v logs passed over, want %d", anyone, n, want)
		}
		if s := status(t, db); !unbroken(s) {
			t.Errorf("any %t: a stranger makes the chain %+v", anyone, s.Completeness)
		}
	}
}

func namesAddress(call rpctest.Call) bool {
	var q struct{ Address any }
	return json.Unmarshal(call.Params[0], &q) == nil && q.Address != nil
}

// A provider that answers no question without an address is asked for the listed
// contracts, says so in the status, and is tried again later.
func TestAnyValidationRefused(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]rpctest.Error{
		"known words": {Code: -32701,
			Message: "Please specify an address in your request or, to remove restrictions, order a dedicated full node here: https://x"},
		"unknown words": {Code: -32000, Message: "we would rather not"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, w := final(t, 51, 600)
			undo := c.Inject(rpctest.On("eth_getLogs", func(call rpctest.Call) *rpctest.Answer {
				if namesAddress(call) {
					return nil
				}
				return &rpctest.Answer{Error: &refusal}
			}))
			db := openStore(t)
			f := follow(t, db, c, Options{AnyValidation: true})
			started(t, f)
			eventually(t, "indexed, and the status says what is not", func() bool {
				return cursorOf(t, db).Hash == c.Head().Hash() &&
					strings.Contains(status(t, db).LastError, "validations: listed")
			})
			if status(t, db).Failing() {
				t.Error("a limit of the endpoint is called a failure")
			}
			undo()
			calls := c.Calls("eth_getLogs")
			w.grow(10)
			eventually(t, "goes on", func() bool { return cursorOf(t, db).Hash == c.Head().Hash() })
			if n := c.Calls("eth_getLogs") - calls; n > 10 {
				t.Errorf("%d questions for 10 blocks: the refused one is still asked", n)
			}
		})
	}
}

// Contracts that were found before go on being followed.
func TestKnownContractsStay(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""), elsewhere(judged(c, 1, 1)))
	db := openStore(t)
	f := follow(t, db, c, Options{AnyValidation: true})
	catchUp(t, f)
	undo := c.Inject(rpctest.On("eth_getLogs", func(call rpctest.Call) *rpctest.Answer {
		if namesAddress(call) {
			return nil
		}
		return &rpctest.Answer{Error: &rpctest.Error{Code: -32701, Message: "please specify an address"}}
	}))
	for n := byte(2); n < 5; n++ {
		c.Mine(elsewhere(judged(c, n, 1)))
		stepUntilDone(t, f)
		if found := validations(t, db, c); found[stranger] != int(n) {
			t.Errorf("%d requests of the known contract, want %d", found[stranger], n)
		}
	}
	undo()
	if !f.unlisted.off {
		t.Error("the refusal was not noticed")
	}
}

func TestAnyValidationIsTriedAgain(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	db := openStore(t)
	f := follow(t, db, c, Options{AnyValidation: true})
	catchUp(t, f)
	f.unlisted.off, f.unlisted.again = true, time.Now().Add(time.Hour)
	c.Mine(elsewhere(judged(c, 1, 1)))
	catchUp(t, f)
	if found := validations(t, db, c); found[stranger] != 0 {
		t.Errorf("asked too early: %v", found)
	}
	f.unlisted.again = time.Now()
	c.Mine(elsewhere(judged(c, 2, 1)))
	catchUp(t, f)
	if found := validations(t, db, c); found[stranger] != 1 || f.unlisted.off {
		t.Errorf("not tried again: %v", found)
	}
}

// One failed request is no refusal: nothing is lost by it, and the question is
// asked on.
func TestAnyValidationSurvivesFailures(t *testing.T) {
	t.Parallel()
	for failures := range int64(4) {
		c := rpctest.New(t, rpctest.Options{})
		c.Mine(c.Register(0, rpctest.Account(1), ""))
		db := openStore(t)
		f := follow(t, db, c, Options{AnyValidation: true})
		catchUp(t, f)
		c.Mine(elsewhere(judged(c, 2, 100)))
		fails := rpctest.Always(rpctest.Answer{Status: 500, Raw: []byte("internal error")})
		c.Inject(rpctest.Times(failures, rpctest.On("eth_getLogs", fails)))
		stepUntilDone(t, f)
		if found := validations(t, db, c); found[stranger] != 1 || f.unlisted.off {
			t.Errorf("%v after %d failed requests, switched off: %t", found, failures, f.unlisted.off)
		}
	}
}

// Nor is one that fails again and again until it is asked for the third time.
func TestAnyValidationRefusedTwice(t *testing.T) {
	t.Parallel()
	c := rpctest.New(t, rpctest.Options{})
	c.Mine(c.Register(0, rpctest.Account(1), ""))
	db := openStore(t)
	f := follow(t, db, c, Options{AnyValidation: true})
	catchUp(t, f)
	c.Mine(elsewhere(judged(c, 2, 100)))
	c.Inject(rpctest.Times(listedTwice, func(call rpctest.Call) *rpctest.Answer {
		if call.Method != "eth_getLogs" || namesAddress(call) {
			return nil
		}
		return &rpctest.Answer{Error: &rpctest.Error{Code: -32000, Message: "we would rather not"}}
	}))
	stepUntilDone(t, f)
	if found := validations(t, db, c); found[stranger] != 1 || f.unlisted.off {
		t.Errorf("%v, switched off: %t", found, f.unlisted.off)
	}
}
