package x402

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// ValidSignature reports whether a signature of a digest is one of a contract wallet: by ERC-1271 of
// a deployed one, by ERC-6492 of one that is not deployed, which is deployed in the question only. The
// error is ErrUnavailable where the chain cannot be asked. A wallet that reverts has not signed.
func (v *Verifier) ValidSignature(ctx context.Context, chainID uint64, wallet common.Address, digest common.Hash,
	raw []byte) (bool, error) {
	s, err := parseSignature(raw)
	if err != nil {
		return false, nil // it is malformed
	}
	question := pack(sigValid, s.raw, digest)
	answer, err := v.call(ctx, chainID, wallet, question)
	switch {
	case errors.Is(err, ErrUnavailable):
		return false, err
	case err == nil && says(answer):
		return true, nil
	case err != nil || len(answer) > 0 || s.factory == common.Address{}:
		return false, nil
	}
	answer, err = v.call(ctx, chainID, Multicall3, packCalls(subcall{s.factory, true, s.deployment},
		subcall{wallet, false, question}))
	if errors.Is(err, ErrUnavailable) {
		return false, err
	}
	// The answer is a list of two results, each with a flag and bytes: the last word is the wallet's.
	return err == nil && len(answer) >= 64 && says(answer[len(answer)-32:]), nil
}

// says reports whether an answer is that of ERC-1271 for a valid signature: the whole word, as contracts
// compare it. A wallet that answers every call with the call itself begins with the same four bytes.
func says(answer []byte) bool {
	magic, _ := hex.DecodeString(validSignature) // a constant
	return len(answer) >= 32 && bytes.Equal(answer[:32], common.RightPadBytes(magic, 32))
}
