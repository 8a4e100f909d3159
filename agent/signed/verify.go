package signed

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
	"github.com/holiman/uint256"

	"repute"
)

// ErrSignature is returned for a signature that is not the account's. It is a repute.ErrInvalid.
var ErrSignature = fmt.Errorf("the signature is not one of the account: %w", repute.ErrInvalid)

// Signer signs EIP-712 data with the key of an account.
type Signer interface {
	Address() common.Address
	SignTyped(ctx context.Context, data apitypes.TypedData) ([]byte, error)
}

// Wallets checks signatures of contract wallets, by ERC-1271, and of wallets that are not deployed,
// by ERC-6492. The error is for a chain that cannot be asked.
type Wallets interface {
	ValidSignature(ctx context.Context, chainID uint64, wallet common.Address, digest common.Hash,
		signature []byte) (bool, error)
}

// maxSignature bounds a signature in bytes: those of wallets that are not deployed carry the call
// that deploys them.
const maxSignature = 16 << 10

// Digest is the hash that is signed of EIP-712 data.
func Digest(data apitypes.TypedData) (common.Hash, error) {
	sum, _, err := apitypes.TypedDataAndHash(data)
	if err != nil {
		return common.Hash{}, fmt.Errorf("typed data: %w", err)
	}
	return common.BytesToHash(sum), nil
}

// Check returns ErrSignature where a signature is not the account's. Accounts with a key are
// recovered; only the others are asked on the chain. Without wallets those are refused.
func Check(ctx context.Context, w Wallets, d Domain, account common.Address, data apitypes.TypedData,
	sig []byte) error {
	digest, err := Digest(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if by, err := Recover(digest, sig); err == nil && by == account && account != (common.Address{}) {
		return nil
	}
	if w == nil || account == (common.Address{}) || len(sig) == 0 || len(sig) > maxSignature {
		return ErrSignature
	}
	valid, err := w.ValidSignature(ctx, d.ChainID, account, digest, sig)
	switch {
	case err != nil:
		return fmt.Errorf("check signature of %s: %w", account, errors.Join(repute.ErrUnavailable, err))
	case !valid:
		return ErrSignature
	}
	return nil
}

// Recover returns the account that signed a digest, from a signature of 65 bytes with v of 0, 1, 27
// or 28, or of 64 bytes (EIP-2098). It refuses s in the upper half, so that each signature has one
// value of s.
func Recover(digest common.Hash, sig []byte) (common.Address, error) {
	plain := bytes.Clone(sig)
	switch len(plain) {
	case crypto.SignatureLength:
		if plain[64] >= 27 {
			plain[64] -= 27
		}
	case crypto.SignatureLength - 1:
		plain = append(plain, plain[32]>>7)
		plain[32] &= 0x7f
	default:
		return common.Address{}, ErrSignature
	}
	var r, s uint256.Int
	r.SetBytes32(plain[:32])
	s.SetBytes32(plain[32:64])
	if plain[64] > 1 || !crypto.ValidateSignatureValues(plain[64], r.ToBig(), s.ToBig(), true) {
		return common.Address{}, ErrSignature
	}
	key, err := crypto.SigToPub(digest[:], plain)
	if err != nil {
		return common.Address{}, ErrSignature
	}
	return crypto.PubkeyToAddress(*key), nil
}
