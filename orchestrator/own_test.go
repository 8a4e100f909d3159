package orchestrator

import (
	"errors"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
)

// The registries of the tests, and the agent that runs: number 22.
var (
	identityAt, reputationAt, validationAt = common.HexToAddress("0x02"), common.HexToAddress("0x03"), common.HexToAddress("0x04")
	own, another                           = big.NewInt(22), big.NewInt(23)
)

func runner(t *testing.T) *work {
	t.Helper()
	token, err := repute.ParseTokenID(own.String())
	if err != nil {
		t.Fatal(err)
	}
	w := &work{e: &Engine{o: Options{Registries: []Registries{{ChainID: 7, Identity: identityAt, Reputation: reputationAt, Validations: []common.Address{validationAt}}}}}}
	w.module.Agent = &repute.AgentID{ChainID: 7, Registry: identityAt, TokenID: token}
	return w
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
				err = w.mayTouch(&Tx{ChainID: 7, Target: at, Data: data})
				if mine := id == own; mine != errors.Is(err, repute.ErrInvalid) {
					t.Errorf("%s of agent %s: %v", m.Sig, id, err)
				}
				if err := w.mayTouch(&Tx{ChainID: 7, Target: at, Data: data[:len(m.ID)+5]}); err == nil {
					t.Errorf("%s, cut off, is allowed", m.Sig)
				}
				if err := w.mayTouch(&Tx{ChainID: 8, Target: at, Data: data}); err != nil {
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
	if err := w.mayTouch(&Tx{ChainID: 7, Target: identityAt, Data: all}); err == nil {
		t.Error("a hand over all of its identities is allowed")
	}
}
