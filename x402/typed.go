package x402

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

// fields are the members of an EIP-712 struct, as pairs of type and name.
func fields(pairs ...string) (out []apitypes.Type) {
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, apitypes.Type{Type: pairs[i], Name: pairs[i+1]})
	}
	return out
}

// AuthorizationData is what a payer signs by EIP-3009, in the domain of the token, whose name and
// version the requirements give.
func AuthorizationData(a Authorization, chainID uint64, token common.Address, name, version string) apitypes.TypedData {
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": fields("string", "name", "string", "version", "uint256", "chainId", "address",
				"verifyingContract"),
			"TransferWithAuthorization": fields("address", "from", "address", "to", "uint256", "value", "uint256",
				"validAfter", "uint256", "validBefore", "bytes32", "nonce"),
		},
		PrimaryType: "TransferWithAuthorization",
		Domain: apitypes.TypedDataDomain{Name: name, Version: version, ChainId: chainNumber(chainID),
			VerifyingContract: token.Hex()},
		Message: apitypes.TypedDataMessage{"from": a.From.Hex(), "to": a.To.Hex(), "value": a.Value.String(),
			"validAfter": a.ValidAfter.String(), "validBefore": a.ValidBefore.String(), "nonce": a.Nonce[:]},
	}
}

// PermitData is what a payer signs by Permit2. A witness with a facilitator is one of the scheme
// upto.
func PermitData(p Permit, chainID uint64) apitypes.TypedData {
	witness := fields("address", "to", "uint256", "validAfter")
	message := apitypes.TypedDataMessage{"to": p.Witness.To.Hex(), "validAfter": p.Witness.ValidAfter.String()}
	if p.Witness.Facilitator != nil {
		witness = fields("address", "to", "address", "facilitator", "uint256", "validAfter")
		message["facilitator"] = p.Witness.Facilitator.Hex()
	}
	return apitypes.TypedData{
		Types: apitypes.Types{
			"EIP712Domain": fields("string", "name", "uint256", "chainId", "address", "verifyingContract"),
			"PermitWitnessTransferFrom": fields("TokenPermissions", "permitted", "address", "spender", "uint256",
				"nonce",
				"uint256", "deadline", "Witness", "witness"),
			"TokenPermissions": fields("address", "token", "uint256", "amount"),
			"Witness":          witness,
		},
		PrimaryType: "PermitWitnessTransferFrom",
		Domain: apitypes.TypedDataDomain{Name: "Permit2", ChainId: chainNumber(chainID),
			VerifyingContract: Permit2.Hex()},
		Message: apitypes.TypedDataMessage{
			"permitted": map[string]any{"token": p.Permitted.Token.Hex(), "amount": p.Permitted.Amount.String()},
			"spender":   p.Spender.Hex(), "nonce": p.Nonce.String(), "deadline": p.Deadline.String(),
			"witness": message},
	}
}

// data is what the payer of a payload signs, for a token of a chain with the terms of its requirements.
func (p *Payload) data(chainID uint64, token common.Address, terms *Extra) apitypes.TypedData {
	if p.Permit2 != nil {
		return PermitData(*p.Permit2, chainID)
	}
	return AuthorizationData(*p.Authorization, chainID, token, terms.Name, terms.Version)
}

// chainNumber is a chain's id as go-ethereum's typed data takes it.
func chainNumber(id uint64) *math.HexOrDecimal256 {
	return (*math.HexOrDecimal256)(NewAmount(id).Big())
}

// digest is the hash that is signed, by EIP-712. The error is go-ethereum's, for data that does not fit its types.
func digest(data apitypes.TypedData) (common.Hash, error) {
	sum, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return common.Hash{}, fmt.Errorf("typed data: %w", err)
	}
	return common.BytesToHash(sum), nil
}

// separator is the hash of a token's EIP-712 domain.
func separator(name, version string, chainID uint64, token common.Address) common.Hash {
	h := func(text string) common.Hash { return crypto.Keccak256Hash([]byte(text)) }
	return crypto.Keccak256Hash(word(h(domainType)), word(h(name)), word(h(version)), word(NewAmount(chainID)),
		word(token))
}
