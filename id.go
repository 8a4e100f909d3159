package repute

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// TokenID is an agent's ERC-721 token id: a uint256, contiguous from 0 per
// registry. It is comparable and its zero value is agent 0.
type TokenID = uint256.Int

// AgentID names an agent for ever: chain, identity registry and token.
type AgentID struct {
	ChainID  uint64
	Registry common.Address
	TokenID  TokenID
}

// String gives the full form eip155:{chain}:{registry}:{token}, the registry in
// EIP-55 capitals.
func (id AgentID) String() string {
	return fmt.Sprintf("eip155:%d:%s:%s", id.ChainID, id.Registry.Hex(), id.TokenID.Dec())
}

// Short gives {chain}:{token}, unambiguous where a chain has one followed
// registry.
func (id AgentID) Short() string {
	return fmt.Sprintf("%d:%s", id.ChainID, id.TokenID.Dec())
}

// AgentRef is what a caller wrote for an agent: like AgentID, but chain and
// registry may be left open for the context to fill in.
type AgentRef struct {
	ChainID  uint64          // 0 when not given
	Registry *common.Address // nil when not given
	TokenID  TokenID
}

// AgentIDForms is the hint shown with every id that does not parse.
const AgentIDForms = "use eip155:{chainId}:{registry}:{tokenId}, {chainId}:{tokenId}, or {tokenId} under /chains/{chainId} or with ?chainId="

// ParseAgentRef reads the full form, the short form or a bare token id, all
// decimal, and the full form as CAIP-19 writes it: eip155:{chain}/erc721:{registry}/{token}.
// The error is ErrInvalid and names the part that is wrong.
func ParseAgentRef(s string) (ref AgentRef, err error) {
	if chain, asset, ok := strings.Cut(s, "/erc721:"); ok {
		s = chain + ":" + strings.Replace(asset, "/", ":", 1)
	}
	parts := strings.Split(s, ":")
	n := len(parts)
	if n == 3 || n > 4 || (n == 4 && parts[0] != "eip155") {
		return AgentRef{}, Invalid("id", "not an agent id", AgentIDForms)
	}
	if n >= 2 {
		if ref.ChainID, err = ParseChainID(parts[n/2-1]); err != nil {
			return AgentRef{}, err
		}
	}
	if n == 4 {
		registry, err := ParseAddress("registry", parts[2])
		if err != nil {
			return AgentRef{}, err
		}
		ref.Registry = &registry
	}
	ref.TokenID, err = ParseTokenID(parts[n-1])
	return ref, err
}

// ParseChainID reads a decimal EIP-155 chain id between 1 and 2^63-1.
func ParseChainID(s string) (uint64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || s[0] == '+' || s[0] == '0' {
		return 0, Invalid("chainId", "not a decimal chain id", "e.g. 8453")
	}
	return uint64(n), nil
}

// ParseTokenID reads a decimal uint256 without sign, separator or leading zero.
func ParseTokenID(s string) (TokenID, error) {
	var id TokenID
	if s == "" || len(s) > 78 || (len(s) > 1 && s[0] == '0') || strings.Trim(s, "0123456789") != "" {
		return id, Invalid("id", "not a decimal token id", AgentIDForms)
	}
	if err := id.SetFromDecimal(s); err != nil {
		return id, Invalid("id", "token id does not fit 256 bits", AgentIDForms)
	}
	return id, nil
}

// ParseAddress reads a 20-byte hex address with 0x. Mixed case must carry a
// right EIP-55 checksum; field names the parameter in the error.
func ParseAddress(field, s string) (common.Address, error) {
	if len(s) != 42 || !strings.HasPrefix(s, "0x") || !common.IsHexAddress(s) {
		return common.Address{}, Invalid(field, "not an address", "0x and 40 hex digits")
	}
	a := common.HexToAddress(s)
	mixed := strings.ContainsAny(s, "abcdef") && strings.ContainsAny(s, "ABCDEF")
	if mixed && s != a.Hex() {
		return common.Address{}, Invalid(field, "address checksum is wrong",
			"check for a typo, or write it in lower case")
	}
	return a, nil
}
