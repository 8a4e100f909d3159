package evmtest

import (
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
)

var two = common.HexToHash("0x2222222222222222222222222222222222222222222222222222222222222222")

func (w *world) status(hash common.Hash) bindings.GetValidationStatusOutput {
	w.t.Helper()
	return get(w, w.validation, validationABI.PackGetValidationStatus(hash), validationABI.UnpackGetValidationStatus)
}

func (w *world) validations(id *big.Int, tag string, validators ...common.Address) [2]uint64 {
	w.t.Helper()
	s := get(w, w.validation, validationABI.PackGetValidationSummary(id, validators, tag),
		validationABI.UnpackGetValidationSummary)
	return [2]uint64{s.Count, uint64(s.AvgResponse)}
}

func respond(hash common.Hash, response uint8, tag string) []byte {
	return validationABI.PackValidationResponse(hash, response, "ipfs://r", two, tag)
}

func TestValidationRequest(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	ask := validationABI.PackValidationRequest(validator.addr, id, "ipfs://q", one)
	w.wantRevert("Not authorized", stranger, w.validation, ask)
	w.wantRevert("unknown", owner, w.validation, validationABI.PackGetValidationStatus(one))
	w.wantEvents(w.send(owner, w.validation, ask),
		repute.ValidationRequest{Validator: validator.addr, TokenID: token(id), URI: "ipfs://q", RequestHash: one})
	asked := w.now()
	s := w.status(one)
	if s.ValidatorAddress != validator.addr || s.AgentId.Cmp(id) != 0 || s.Response != 0 ||
		s.ResponseHash != [32]byte{} || s.Tag != "" || s.LastUpdate.Cmp(asked) != 0 {
		t.Errorf("pending: %+v", s)
	}
	if got := w.validations(id, ""); got != [2]uint64{} {
		t.Errorf("pending counts: %v", got)
	}
	// A hash can be used once, by any account.
	other := w.register(stranger, "")
	squat := validationABI.PackValidationRequest(stranger.addr, other, "", one)
	w.wantRevert("exists", owner, w.validation, ask)
	w.wantRevert("exists", stranger, w.validation, squat)
	w.wantRevert("bad validator", owner, w.validation,
		validationABI.PackValidationRequest(common.Address{}, id, "", one))
	w.wantRevert("ERC721NonexistentToken(999)", owner, w.validation,
		validationABI.PackValidationRequest(validator.addr, n(999), "", two))
}

// Operators and the approved address may ask too.
func TestValidationRequestAuthorized(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.send(owner, w.identity, identityABI.PackSetApprovalForAll(stranger.addr, true))
	w.send(owner, w.identity, identityABI.PackApprove(wallet.addr, id))
	w.send(stranger, w.validation, validationABI.PackValidationRequest(validator.addr, id, "", one))
	w.send(wallet, w.validation, validationABI.PackValidationRequest(client.addr, id, "", two))
	of := get(w, w.validation, validationABI.PackGetAgentValidations(id), validationABI.UnpackGetAgentValidations)
	if !reflect.DeepEqual(of, [][32]byte{one, two}) {
		t.Errorf("of the agent: %x", of)
	}
	to := get(w, w.validation, validationABI.PackGetValidatorRequests(client.addr),
		validationABI.UnpackGetValidatorRequests)
	if !reflect.DeepEqual(to, [][32]byte{two}) {
		t.Errorf("to the validator: %x", to)
	}
	if got := get(w, w.validation, validationABI.PackGetIdentityRegistry(),
		validationABI.UnpackGetIdentityRegistry); got != w.identity {
		t.Errorf("identity registry %s", got)
	}
}

func TestValidationResponse(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	w.wantRevert("unknown", validator, w.validation, respond(one, 1, ""))
	w.send(owner, w.validation, validationABI.PackValidationRequest(validator.addr, id, "", one))
	w.wantRevert("not validator", owner, w.validation, respond(one, 1, ""))
	w.wantRevert("resp>100", validator, w.validation, respond(one, 101, ""))
	for _, c := range []struct {
		response uint8
		tag      string
	}{{60, "soft"}, {100, "hard"}, {0, ""}, {77, "hard"}} {
		w.wantEvents(w.send(validator, w.validation, respond(one, c.response, c.tag)), repute.ValidationResponse{
			Validator: validator.addr, TokenID: token(id), RequestHash: one, Response: c.response,
			URI: "ipfs://r", ResponseHash: two, Tag: c.tag})
		answered := w.now()
		if s := w.status(one); s.Response != c.response || s.Tag != c.tag || s.ResponseHash != two ||
			s.LastUpdate.Cmp(answered) != 0 {
			t.Errorf("answered: %+v", s)
		}
		if got := w.validations(id, ""); got != [2]uint64{1, uint64(c.response)} {
			t.Errorf("answered %d: summary %v", c.response, got)
		}
	}
	// Only the newest answer's tag counts.
	if got := w.validations(id, "soft"); got != [2]uint64{} {
		t.Errorf("by an earlier tag: %v", got)
	}
}

func TestValidationSummary(t *testing.T) {
	w := newWorld(t)
	id := w.register(owner, "")
	hash := func(i byte) common.Hash { return common.Hash{i} }
	for i, v := range []party{validator, validator, client, stranger} {
		w.send(owner, w.validation, validationABI.PackValidationRequest(v.addr, id, "", hash(byte(i+1))))
	}
	w.send(validator, w.validation, respond(hash(1), 100, "a"))
	w.send(validator, w.validation, respond(hash(2), 51, "b"))
	w.send(client, w.validation, respond(hash(3), 0, "a"))
	for _, c := range []struct {
		tag        string
		validators []common.Address
		want       [2]uint64
	}{
		{"", nil, [2]uint64{3, 50}}, // 151/3, rounded down
		{"a", nil, [2]uint64{2, 50}},
		{"", []common.Address{validator.addr}, [2]uint64{2, 75}},
		{"", []common.Address{validator.addr, validator.addr}, [2]uint64{2, 75}},
		{"b", []common.Address{client.addr}, [2]uint64{}},
		{"", []common.Address{stranger.addr}, [2]uint64{}},
		{"a", []common.Address{client.addr, validator.addr}, [2]uint64{2, 50}},
	} {
		if got := w.validations(id, c.tag, c.validators...); got != c.want {
			t.Errorf("%q of %v: %v, want %v", c.tag, c.validators, got, c.want)
		}
	}
}
