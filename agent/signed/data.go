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
	return d.data("TaskResponse", fields("uint256", "agentId", "bytes32", "taskHash", "bytes32", "resultHash",
		"uint256",
		"timestamp", "string", "metadata"), apitypes.TypedDataMessage{"agentId": r.AgentID.Dec(),
		"taskHash":   r.TaskHash[:],
		"resultHash": r.ResultHash[:], "timestamp": number(r.Timestamp), "metadata": r.Metadata})
}

// Data is what is signed of a promise to pay. A missing amount is 0.
func (r *PaymentReceipt) Data(d Domain) apitypes.TypedData {
	amount := r.Amount
	if amount == nil {
		amount = new(big.Int)
	}
	return d.data("PaymentReceipt", fields("address", "from", "address", "to", "uint256", "amount", "string",
		"currency",
		"bytes32", "taskHash", "uint256", "timestamp"),
		apitypes.TypedDataMessage{"from": r.From.Hex(), "to": r.To.Hex(),
			"amount": amount.String(), "currency": r.Currency, "taskHash": r.TaskHash[:],
			"timestamp": number(r.Timestamp)})
}

// Data is what is signed of a request.
func (r *TaskRequest) Data(d Domain) apitypes.TypedData {
	return d.data("TaskRequest", fields("uint256", "agentId", "address", "client", "bytes32", "taskHash", "uint256",
		"timestamp"), apitypes.TypedDataMessage{"agentId": r.AgentID.Dec(), "client": r.Client.Hex(),
		"taskHash": r.TaskHash[:], "timestamp": number(r.Timestamp)})
}

// Data is what is signed of a policy file.
func (p *Policy) Data(d Domain) apitypes.TypedData {
	return d.data("Policy", fields("uint256", "agentId", "bytes32", "policyHash"), apitypes.TypedDataMessage{
		"agentId": p.AgentID.Dec(), "policyHash": p.PolicyHash[:]})
}

// Data is what is signed of a heartbeat.
func (h *Heartbeat) Data(d Domain) apitypes.TypedData {
	return d.data("Heartbeat", fields("uint256", "agentId", "string", "mode", "string", "version", "uint256",
		"timestamp"),
		apitypes.TypedDataMessage{"agentId": h.AgentID.Dec(), "mode": h.Mode, "version": h.Version,
			"timestamp": number(h.Timestamp)})
}

// data is EIP-712 data of one type in the domain.
func (d Domain) data(name string, of []apitypes.Type, message apitypes.TypedDataMessage) apitypes.TypedData {
	return apitypes.TypedData{
		Types: apitypes.Types{"EIP712Domain": fields("string", "name", "string", "version", "uint256", "chainId",
			"address",
			"verifyingContract"), name: of},
		PrimaryType: name,
		Domain: apitypes.TypedDataDomain{Name: "TrustlessAgentFramework", Version: "1",
			ChainId: (*math.HexOrDecimal256)(new(big.Int).SetUint64(d.ChainID)), VerifyingContract: d.Registry.Hex()},
		Message: message,
	}
}

// fields are the members of a struct, as pairs of type and name.
func fields(pairs ...string) (out []apitypes.Type) {
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, apitypes.Type{Type: pairs[i], Name: pairs[i+1]})
	}
	return out
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
