package x402

import (
	"bytes"
	"encoding/hex"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// signature is a signature as a payment carries it.
type signature struct {
	raw []byte // without the wrapping of ERC-6492
	// factory deploys the payer's wallet when it is called with deployment (ERC-6492); zero where
	// the signature is not wrapped.
	factory    common.Address
	deployment []byte // calldata, which the payer chose: see Multicall3
}

// parseSignature unwraps a signature by ERC-6492, which is the ABI encoding of factory, calldata
// and signature, followed by a fixed word.
func parseSignature(raw []byte) (s signature, err error) {
	appendix, _ := hex.DecodeString(deploymentAppendix) // a constant
	wrapped, ok := bytes.CutSuffix(raw, appendix)
	if !ok {
		return signature{raw: raw}, nil
	}
	malformed := Refuse(ReasonSignature, "the signature has the ending of ERC-6492 and is not encoded by it")
	if len(wrapped) < 96 || !bytes.Equal(wrapped[:12], make([]byte, 12)) {
		return s, malformed
	}
	s.factory = common.BytesToAddress(wrapped[:32])
	call, ok1 := bytesAt(wrapped, wrapped[32:64])
	inner, ok2 := bytesAt(wrapped, wrapped[64:96])
	if !ok1 || !ok2 || len(inner) == 0 || (s.factory == common.Address{}) {
		return s, malformed
	}
	s.deployment, s.raw = call, inner
	return s, nil
}

// bytesAt reads the byte string that an offset points to, and reports false where it is not inside of data. The result
// is a part of data. Padding is not looked at.
func bytesAt(data, offset []byte) ([]byte, bool) {
	at := readAmount(offset)
	if at.Cmp(NewAmount(uint64(len(data)))) > 0 || uint64(len(data))-at.Uint64() < 32 {
		return nil, false
	}
	rest := data[at.Uint64():]
	n := readAmount(rest[:32])
	if n.Cmp(NewAmount(uint64(len(rest)-32))) > 0 {
		return nil, false
	}
	return rest[32 : 32+n.Uint64()], true
}

// signatureSize is the length of r, s and v. Compact signatures of 64 bytes (EIP-2098) are not
// signatures of accounts to EIP-3009 tokens and Permit2 of today, so that they are only offered to
// contract wallets, which may have any form.
const signatureSize = 65

// recovered returns the account that signed a digest, and the signature with v of 27 or 28, which
// is the only form that tokens take. ok is false where the signature has another form, or where s
// is in the upper half: each signature has one form, or a payment would have two.
func recovered(digest common.Hash, raw []byte) (account common.Address, usual []byte, ok bool) {
	if len(raw) != signatureSize {
		return account, nil, false
	}
	usual = bytes.Clone(raw)
	if usual[64] < 2 {
		usual[64] += 27
	}
	v := usual[64] - 27
	r, s := readAmount(usual[:32]), readAmount(usual[32:64])
	if v > 1 || !crypto.ValidateSignatureValues(v, r.Big(), s.Big(), true) {
		return account, nil, false
	}
	plain := bytes.Clone(usual)
	plain[64] = v
	key, err := crypto.SigToPub(digest[:], plain)
	if err != nil {
		return account, nil, false
	}
	return crypto.PubkeyToAddress(*key), usual, true
}
