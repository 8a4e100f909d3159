package signed

import (
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
)

// Domain is where signatures are valid: the identity registry of the agent.
type Domain struct {
	ChainID  uint64
	Registry common.Address
}

// DomainOf returns the domain of an agent.
func DomainOf(id repute.AgentID) Domain { return Domain{ChainID: id.ChainID, Registry: id.Registry} }

// TaskResponse is what an agent says of a task (section 3.2 of the specification).
type TaskResponse struct {
	AgentID    repute.TokenID
	TaskHash   common.Hash
	ResultHash common.Hash
	Timestamp  uint64 // seconds since 1970
	Metadata   string
}

// PaymentReceipt is a client's promise to pay for a task (section 3.2). No money moves by it.
type PaymentReceipt struct {
	From, To  common.Address
	Amount    *big.Int // in the currency's smallest unit
	Currency  string
	TaskHash  common.Hash
	Timestamp uint64 // seconds since 1970
}

// TaskRequest proves who sends a request, also one that costs nothing.
type TaskRequest struct {
	AgentID   repute.TokenID
	Client    common.Address
	TaskHash  common.Hash
	Timestamp uint64 // seconds since 1970
}

// Policy is what the owner signs of a policy file.
type Policy struct {
	AgentID    repute.TokenID
	PolicyHash common.Hash // of the file without its member signature: see HashJSON
}

// Heartbeat says that an agent ran at a time.
type Heartbeat struct {
	AgentID   repute.TokenID
	Mode      string // normal, degraded, maintenance, shutdown
	Version   string
	Timestamp uint64 // seconds since 1970
}

// Data is what is signed of an answer.
func (r *TaskResponse) Data(d Domain) apitypes.TypedData {
	return d.data("TaskResponse", member{"uint256", "agentId", r.AgentID.Dec()},
		member{"bytes32", "taskHash", r.TaskHash[:]}, member{"bytes32", "resultHash", r.ResultHash[:]},
		member{"uint256", "timestamp", number(r.Timestamp)}, member{"string", "metadata", r.Metadata})
}

// Data is what is signed of a promise to pay. A missing amount is 0.
func (r *PaymentReceipt) Data(d Domain) apitypes.TypedData {
	amount := r.Amount
	if amount == nil {
		amount = new(big.Int)
	}
	return d.data("PaymentReceipt", member{"address", "from", r.From.Hex()}, member{"address", "to", r.To.Hex()},
		member{"uint256", "amount", amount.String()}, member{"string", "currency", r.Currency},
		member{"bytes32", "taskHash", r.TaskHash[:]}, member{"uint256", "timestamp", number(r.Timestamp)})
}

// Data is what is signed of a request.
func (r *TaskRequest) Data(d Domain) apitypes.TypedData {
	return d.data("TaskRequest", member{"uint256", "agentId", r.AgentID.Dec()},
		member{"address", "client", r.Client.Hex()}, member{"bytes32", "taskHash", r.TaskHash[:]},
		member{"uint256", "timestamp", number(r.Timestamp)})
}

// Data is what is signed of a policy file.
func (p *Policy) Data(d Domain) apitypes.TypedData {
	return d.data("Policy", member{"uint256", "agentId", p.AgentID.Dec()},
		member{"bytes32", "policyHash", p.PolicyHash[:]})
}

// Data is what is signed of a heartbeat.
func (h *Heartbeat) Data(d Domain) apitypes.TypedData {
	return d.data("Heartbeat", member{"uint256", "agentId", h.AgentID.Dec()}, member{"string", "mode", h.Mode},
		member{"string", "version", h.Version}, member{"uint256", "timestamp", number(h.Timestamp)})
}

// member is a member of a signed struct: its type in Solidity, its name and its value.
type member struct {
	kind, name string
	value      any
}

// data is EIP-712 data of one type in the domain. Members in another order give another digest.
func (d Domain) data(name string, members ...member) apitypes.TypedData {
	types, message := []apitypes.Type{}, apitypes.TypedDataMessage{}
	for _, m := range members {
		types = append(types, apitypes.Type{Type: m.kind, Name: m.name})
		message[m.name] = m.value
	}
	return apitypes.TypedData{
		Types: apitypes.Types{"EIP712Domain": {{Type: "string", Name: "name"}, {Type: "string", Name: "version"},
			{Type: "uint256", Name: "chainId"}, {Type: "address", Name: "verifyingContract"}}, name: types},
		PrimaryType: name,
		Domain: apitypes.TypedDataDomain{Name: "TrustlessAgentFramework", Version: "1",
			ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(d.ChainID)), VerifyingContract: d.Registry.Hex()},
		Message: message,
	}
}

// number is a number as EIP-712 data has it: JSON numbers do not hold 64 bits.
func number(n uint64) string { return strconv.FormatUint(n, 10) }
