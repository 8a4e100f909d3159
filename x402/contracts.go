package x402

import (
	"encoding/binary"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Contracts that have the same address on every chain.
var (
	// Permit2 moves tokens by the signature of their owner, who approved it.
	Permit2 = common.HexToAddress("0x000000000022D473030F116dDEE9F6B43aC78BA3")
	// ExactProxy is the spender that payers of the scheme exact permit.
	ExactProxy = common.HexToAddress("0x402085c248EeA27D92E8b30b2C58ed07f9E20001")
	// UptoProxy is the spender that payers of the scheme upto permit.
	UptoProxy = common.HexToAddress("0x4020A4f3b7b90ccA423B9fabCc0CE57C6C240002")
	// Multicall3 makes several calls in one transaction. Payments by wallets that are not deployed
	// yet go through it: the deploying call, which the payer chooses, MUST NOT come from the
	// account of the facilitator.
	Multicall3 = common.HexToAddress("0xcA11bde05977b3631167028862bE2a173976CA11")
)

// Functions of the contracts.
const (
	sigTransferSplit = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)"
	sigTransferBytes = "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)"
	sigExactSettle   = "settle(((address,uint256),uint256,uint256),address,(address,uint256),bytes)"
	sigUptoSettle    = "settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)"
	sigAggregate     = "aggregate3((address,bool,bytes)[])"
	sigNonceState    = "authorizationState(address,bytes32)"
	sigBalance       = "balanceOf(address)"
	sigAllowance     = "allowance(address,address)"
	sigNonceBitmap   = "nonceBitmap(address,uint256)"
	sigValid         = "isValidSignature(bytes32,bytes)"
	sigDomain        = "DOMAIN_SEPARATOR()"
	sigName          = "name()"
	sigVersion       = "version()"
	eventTransfer    = "Transfer(address,address,uint256)"
	// eventAuthorizationUsed is of EIP-3009.
	eventAuthorizationUsed     = "AuthorizationUsed(address,bytes32)"
	eventAuthorizationCanceled = "AuthorizationCanceled(address,bytes32)"
	validSignature             = "1626ba7e" // what ERC-1271 wallets answer
	domainType                 = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
	deploymentAppendix         = "6492649264926492649264926492649264926492649264926492649264926492"
)

// selector is the beginning of calldata for a function.
func selector(of string) []byte { return crypto.Keccak256([]byte(of))[:4] }

// word is a value in 32 bytes: an address, a hash, an Amount, or a number that is not negative. Others give zeros,
// which is a mistake of this package.
func word(v any) []byte {
	switch v := v.(type) {
	case common.Address:
		return common.LeftPadBytes(v[:], 32)
	case common.Hash:
		return v[:]
	case Amount:
		b := v.n.Bytes32()
		return b[:]
	case uint8:
		return uintWord(uint64(v))
	case int:
		return uintWord(uint64(v))
	}
	return make([]byte, 32)
}

// uintWord is a number in 32 bytes.
func uintWord(n uint64) []byte {
	out := make([]byte, 32)
	binary.BigEndian.PutUint64(out[24:], n)
	return out
}

// pack encodes a call whose arguments are words; where tail is not nil, one dynamic argument of
// bytes follows them.
func pack(function string, tail []byte, words ...any) []byte {
	out := selector(function)
	for _, w := range words {
		out = append(out, word(w)...)
	}
	if tail == nil {
		return out
	}
	out = append(out, uintWord(uint64(32*(len(words)+1)))...)
	return append(out, bytesTail(tail)...)
}

// bytesTail is a byte string with its length, padded to words.
func bytesTail(b []byte) []byte {
	out := append(uintWord(uint64(len(b))), b...)
	return append(out, make([]byte, (32-len(b)%32)%32)...)
}

// subcall is one call of Multicall3.
type subcall struct {
	to       common.Address
	mayFail  bool
	calldata []byte
}

// packCalls encodes a call of Multicall3.
func packCalls(calls ...subcall) []byte {
	out := append(selector(sigAggregate), uintWord(32)...)
	out = append(out, uintWord(uint64(len(calls)))...)
	at, tails := 32*len(calls), []byte{}
	for _, c := range calls {
		mayFail := 0
		if c.mayFail {
			mayFail = 1
		}
		item := append(append(word(c.to), word(mayFail)...), uintWord(96)...)
		item = append(item, bytesTail(c.calldata)...)
		out = append(out, uintWord(uint64(at+len(tails)))...)
		tails = append(tails, item...)
	}
	return append(out, tails...)
}

// readString decodes an answer that is one string. Answers that are none give "".
func readString(answer []byte) string {
	if len(answer) < 64 {
		return ""
	}
	n := new(big.Int).SetBytes(answer[32:64])
	if !n.IsUint64() || n.Uint64() > uint64(len(answer)-64) {
		return ""
	}
	return string(answer[64 : 64+n.Uint64()])
}

// readAmount decodes an answer that is one number. Answers that are none give 0.
func readAmount(answer []byte) (a Amount) {
	if len(answer) == 32 {
		a.n.SetBytes32(answer)
	}
	return a
}
