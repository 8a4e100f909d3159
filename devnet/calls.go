package devnet

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/contracts/bindings"
)

// Metadata is one on-chain key of an agent.
type Metadata struct {
	Key   string
	Value []byte
}

// Register adds a registration by from, who becomes owner and wallet. The id is
// known once mined: see Mined.Registered.
func (b *Batch) Register(from Account, uri string, metadata ...Metadata) {
	r := b.dn.identity
	if len(metadata) == 0 {
		data, err := r.TryPackRegisterURI(uri)
		b.packed(from, b.dn.chain.Identity, data, err)
		return
	}
	entries := make([]bindings.IdentityRegistryMetadataEntry, len(metadata))
	for i, m := range metadata {
		entries[i] = bindings.IdentityRegistryMetadataEntry{MetadataKey: m.Key, MetadataValue: m.Value}
	}
	data, err := r.TryPackRegisterWithMetadata(uri, entries)
	b.packed(from, b.dn.chain.Identity, data, err)
}

// RegisterBare adds a registration without a URI.
func (b *Batch) RegisterBare(from Account) {
	data, err := b.dn.identity.TryPackRegister()
	b.packed(from, b.dn.chain.Identity, data, err)
}

// SetAgentURI replaces an agent's URI; from is owner or operator.
func (b *Batch) SetAgentURI(from Account, agent uint64, uri string) {
	data, err := b.dn.identity.TryPackSetAgentURI(token(agent), uri)
	b.packed(from, b.dn.chain.Identity, data, err)
}

// SetMetadata sets one metadata key; from is owner or operator.
func (b *Batch) SetMetadata(from Account, agent uint64, key string, value []byte) {
	data, err := b.dn.identity.TryPackSetMetadata(token(agent), key, value)
	b.packed(from, b.dn.chain.Identity, data, err)
}

// SetAgentWallet makes wallet the agent's wallet, with its consent signed for
// owner at the time of the block.
func (b *Batch) SetAgentWallet(owner Account, agent uint64, wallet Account) {
	b.add(owner, &b.dn.chain.Identity, func(at uint64) ([]byte, error) {
		deadline := new(big.Int).SetUint64(at + consentSeconds)
		signature, err := b.dn.Consent(agent, wallet, owner.Address, deadline)
		if err != nil {
			return nil, err
		}
		return b.dn.identity.TryPackSetAgentWallet(token(agent), wallet.Address, deadline, signature)
	})
}

// UnsetAgentWallet clears the agent's wallet.
func (b *Batch) UnsetAgentWallet(owner Account, agent uint64) {
	data, err := b.dn.identity.TryPackUnsetAgentWallet(token(agent))
	b.packed(owner, b.dn.chain.Identity, data, err)
}

// Transfer moves an agent, which clears its wallet.
func (b *Batch) Transfer(owner Account, agent uint64, to common.Address) {
	data, err := b.dn.identity.TryPackTransferFrom(owner.Address, to, token(agent))
	b.packed(owner, b.dn.chain.Identity, data, err)
}

// Approve lets one address act for one agent; the zero address ends it.
func (b *Batch) Approve(owner Account, agent uint64, approved common.Address) {
	data, err := b.dn.identity.TryPackApprove(approved, token(agent))
	b.packed(owner, b.dn.chain.Identity, data, err)
}

// ApproveAll lets operator act for all agents of owner, or no longer.
func (b *Batch) ApproveAll(owner Account, operator common.Address, approved bool) {
	data, err := b.dn.identity.TryPackSetApprovalForAll(operator, approved)
	b.packed(owner, b.dn.chain.Identity, data, err)
}

// Rating is what a client says of an agent: Value / 10^Decimals under two tags.
type Rating struct {
	Agent    uint64
	Value    *big.Int
	Decimals uint8
	Tag1     string
	Tag2     string
	Endpoint string
	URI      string
	Hash     common.Hash // keccak256 of the file behind URI
}

// GiveFeedback adds a rating by client.
func (b *Batch) GiveFeedback(client Account, r Rating) {
	data, err := b.dn.reputation.TryPackGiveFeedback(token(r.Agent), r.Value, r.Decimals, r.Tag1, r.Tag2, r.Endpoint,
		r.URI, r.Hash)
	b.packed(client, b.dn.chain.Reputation, data, err)
}

// RevokeFeedback withdraws the client's index-th rating of the agent, from 1.
func (b *Batch) RevokeFeedback(client Account, agent, index uint64) {
	data, err := b.dn.reputation.TryPackRevokeFeedback(token(agent), index)
	b.packed(client, b.dn.chain.Reputation, data, err)
}

// AppendResponse answers a rating.
func (b *Batch) AppendResponse(from Account, agent uint64, client common.Address, index uint64, uri string,
	hash common.Hash) {
	data, err := b.dn.reputation.TryPackAppendResponse(token(agent), client, index, uri, hash)
	b.packed(from, b.dn.chain.Reputation, data, err)
}

// ValidationRequest asks validator to check the agent's work; owner acts for the
// agent. The hash must be new to the registry.
func (b *Batch) ValidationRequest(owner Account, validator common.Address, agent uint64, uri string, hash common.Hash) {
	data, err := b.dn.validation.TryPackValidationRequest(validator, token(agent), uri, hash)
	b.packed(owner, b.dn.chain.Validations[0], data, err)
}

// ValidationAnswer is a validator's answer, 0 to 100.
type ValidationAnswer struct {
	Request  common.Hash
	Response uint8
	URI      string
	Hash     common.Hash
	Tag      string
}

// ValidationResponse answers a request; the latest answer counts.
func (b *Batch) ValidationResponse(validator Account, v ValidationAnswer) {
	data, err := b.dn.validation.TryPackValidationResponse(v.Request, v.Response, v.URI, v.Hash, v.Tag)
	b.packed(validator, b.dn.chain.Validations[0], data, err)
}

// Registered lists the agents that the block's batch registered, in order.
func (m Mined) Registered() (agents []uint64) {
	for _, r := range m.Receipts {
		for _, l := range r.Logs {
			if mint(l) {
				agents = append(agents, l.Topics[3].Big().Uint64())
			}
		}
	}
	return agents
}

// mint recognizes an ERC-721 Transfer from nobody.
func mint(l *types.Log) bool {
	return len(l.Topics) == 4 && l.Topics[0] == transferTopic && l.Topics[1] == (common.Hash{})
}

var transferTopic = crypto.Keccak256Hash([]byte("Transfer(address,address,uint256)"))

// consentSeconds is how long a wallet's consent holds; the registry allows five
// minutes.
const consentSeconds = 240

// Consent signs AgentWalletSet as EIP-712 typed data with the wallet's key: until the
// deadline, unix seconds, owner may make it the agent's wallet.
func (d *Devnet) Consent(agent uint64, wallet Account, owner common.Address, deadline *big.Int) ([]byte, error) {
	word := func(name, kind string) apitypes.Type { return apitypes.Type{Name: name, Type: kind} }
	data := apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": {word("name", "string"), word("version", "string"),
				word("chainId", "uint256"), word("verifyingContract", "address")},
			"AgentWalletSet": {word("agentId", "uint256"), word("newWallet", "address"),
				word("owner", "address"), word("deadline", "uint256")},
		},
		PrimaryType: "AgentWalletSet",
		Domain: apitypes.TypedDataDomain{
			Name: "ERC8004IdentityRegistry", Version: "1",
			ChainId:           math.NewHexOrDecimal256(int64(d.opt.ChainID)),
			VerifyingContract: d.chain.Identity.Hex(),
		},
		Message: apitypes.TypedDataMessage{
			"agentId": token(agent), "newWallet": wallet.Address.Hex(), "owner": owner.Hex(), "deadline": deadline,
		},
	}
	digest, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return nil, fmt.Errorf("hash wallet consent: %w", err)
	}
	signature, err := crypto.Sign(digest, wallet.Key)
	if err != nil {
		return nil, fmt.Errorf("sign wallet consent: %w", err)
	}
	signature[crypto.RecoveryIDOffset] += 27 // as Solidity's ecrecover wants it
	return signature, nil
}

// token and tokenID are an agent's id as the bindings and as package contracts take it.
func token(agent uint64) *big.Int { return new(big.Int).SetUint64(agent) }

func tokenID(agent uint64) (id repute.TokenID) {
	id.SetUint64(agent)
	return id
}
