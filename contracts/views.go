package contracts

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
)

// Views encodes calls of the registries' view functions and reads the answers. It
// is safe for concurrent use.
type Views struct {
	identity   *bindings.IdentityRegistry
	reputation *bindings.ReputationRegistry
	validation *bindings.ValidationRegistry
}

// NewViews parses the registries' ABIs, which takes some milliseconds: keep it.
func NewViews() *Views {
	return &Views{bindings.NewIdentityRegistry(), bindings.NewReputationRegistry(), bindings.NewValidationRegistry()}
}

// Question is one call: what to send and how to read what comes back. Read fails on an empty answer, which is what
// nodes give for an address without a contract.
type Question[T any] struct {
	Data []byte
	Read func([]byte) (T, error)
}

// AgentCountSlot is the place in an identity registry's storage that holds the
// number of agents, which is also the next id. No function returns it.
func AgentCountSlot() common.Hash {
	return common.HexToHash("0xa040f782729de4970518741823ec1276cbcd41a0c7493f62d173341566a04e00")
}

// OwnerOf asks the identity registry for an agent's owner; it reverts for an
// agent that does not exist.
func (v *Views) OwnerOf(id repute.TokenID) Question[common.Address] {
	return Question[common.Address]{v.identity.PackOwnerOf(id.ToBig()), v.identity.UnpackOwnerOf}
}

// TokenURI asks for an agent's URI.
func (v *Views) TokenURI(id repute.TokenID) Question[string] {
	return Question[string]{v.identity.PackTokenURI(id.ToBig()), v.identity.UnpackTokenURI}
}

// AgentWallet asks for an agent's wallet, zero when cleared.
func (v *Views) AgentWallet(id repute.TokenID) Question[common.Address] {
	return Question[common.Address]{v.identity.PackGetAgentWallet(id.ToBig()), v.identity.UnpackGetAgentWallet}
}

// Approved asks for an agent's approved address, zero for none.
func (v *Views) Approved(id repute.TokenID) Question[common.Address] {
	return Question[common.Address]{v.identity.PackGetApproved(id.ToBig()), v.identity.UnpackGetApproved}
}

// Metadata asks for the value of a key, empty when it was never set.
func (v *Views) Metadata(id repute.TokenID, key string) Question[[]byte] {
	return Question[[]byte]{v.identity.PackGetMetadata(id.ToBig(), key), v.identity.UnpackGetMetadata}
}

// Operator asks whether operator acts for all agents of owner.
func (v *Views) Operator(owner, operator common.Address) Question[bool] {
	return Question[bool]{v.identity.PackIsApprovedForAll(owner, operator), v.identity.UnpackIsApprovedForAll}
}

// Clients asks the reputation registry who ever rated an agent, in order of first
// ratings.
func (v *Views) Clients(id repute.TokenID) Question[[]common.Address] {
	return Question[[]common.Address]{v.reputation.PackGetClients(id.ToBig()), v.reputation.UnpackGetClients}
}

// LastIndex asks how many ratings a client gave an agent.
func (v *Views) LastIndex(id repute.TokenID, client common.Address) Question[uint64] {
	return Question[uint64]{v.reputation.PackGetLastIndex(id.ToBig(), client), v.reputation.UnpackGetLastIndex}
}

// Summary asks for getSummary of clients; an empty tag does not filter. The registry reads every
// rating of theirs: thousands exceed what nodes let a call cost.
func (v *Views) Summary(id repute.TokenID, clients []common.Address, tag1, tag2 string) Question[repute.Summary] {
	return Question[repute.Summary]{v.reputation.PackGetSummary(id.ToBig(), clients, tag1, tag2),
		func(raw []byte) (repute.Summary, error) {
			out, err := v.reputation.UnpackGetSummary(raw)
			return repute.Summary{Count: out.Count,
				Amount: repute.Amount{Value: out.SummaryValue, Decimals: out.SummaryValueDecimals}}, err
		}}
}

// Rating is what the reputation registry keeps of one feedback.
type Rating struct {
	Value      *big.Int
	Decimals   uint8
	Tag1, Tag2 string
	Revoked    bool
}

// Feedback asks for one rating by its index, from 1.
func (v *Views) Feedback(id repute.TokenID, client common.Address, index uint64) Question[Rating] {
	return Question[Rating]{v.reputation.PackReadFeedback(id.ToBig(), client, index), func(raw []byte) (Rating, error) {
		out, err := v.reputation.UnpackReadFeedback(raw)
		return Rating{out.Value, out.ValueDecimals, out.Tag1, out.Tag2, out.IsRevoked}, err
	}}
}

// Responses asks how many responses there are: to one rating of a client, to all
// of the client's for index 0, to all of the agent's for the zero client.
func (v *Views) Responses(id repute.TokenID, client common.Address, index uint64) Question[uint64] {
	return Question[uint64]{v.reputation.PackGetResponseCount(id.ToBig(), client, index, nil),
		v.reputation.UnpackGetResponseCount}
}

// Requests asks a validation registry for the hashes of an agent's requests.
func (v *Views) Requests(id repute.TokenID) Question[[][32]byte] {
	return Question[[][32]byte]{v.validation.PackGetAgentValidations(id.ToBig()),
		v.validation.UnpackGetAgentValidations}
}

// Validation is what a validation registry keeps of one request. A pending one
// looks like one answered 0 without hash and tag.
type Validation struct {
	Validator common.Address
	Agent     *big.Int
	Response  uint8
	Hash      common.Hash
	Tag       string
	Updated   uint64 // seconds since 1970: of the newest answer, else of the request
}

// Validation asks for a request; unknown ones revert.
func (v *Views) Validation(hash common.Hash) Question[Validation] {
	return Question[Validation]{v.validation.PackGetValidationStatus(hash), func(raw []byte) (Validation, error) {
		out, err := v.validation.UnpackGetValidationStatus(raw)
		if err != nil {
			return Validation{}, err
		}
		return Validation{out.ValidatorAddress, out.AgentId, out.Response, out.ResponseHash, out.Tag,
			out.LastUpdate.Uint64()}, nil
	}}
}
