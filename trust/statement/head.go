package statement

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// The domain of signed heads of decisions. It has neither chain nor contract.
const (
	headDomainName    = "repute decisions"
	headDomainVersion = "1"
	headType          = "DecisionsHead"
)

// headHash is the EIP-712 hash of a head: what is signed. docs/reference/orchestrator.md defines it.
func headHash(h repute.DecisionsHead) common.Hash {
	separator := hashStruct("EIP712Domain", []value{{member{"name", "string"}, headDomainName},
		{member{"version", "string"}, headDomainVersion}})
	message := hashStruct(headType, []value{{member{"taskId", "string"}, h.Task}, {member{"runId", "string"}, h.Root},
		{member{"decisions", "uint256"}, uint64(h.Count)}, {member{"head", "bytes32"}, h.Hash}})
	return crypto.Keccak256Hash([]byte{0x19, 0x01}, separator.Bytes(), message.Bytes())
}

// SealHead signs the head of a task's chain of decisions. Before the key's time it is
// returned without a signature.
func (s *Signer) SealHead(h repute.DecisionsHead, now time.Time) (repute.SealedHead, error) {
	out := repute.SealedHead{DecisionsHead: h}
	if now.Before(s.since) {
		return out, nil
	}
	hash := headHash(h)
	signature, err := crypto.Sign(hash[:], s.key)
	if err != nil {
		return out, fmt.Errorf("sign the head of decisions: %w", err)
	}
	signature[64] += 27
	out.Signer, out.Signature = s.Address(), signature
	return out, nil
}

// VerifyHead says why a signed head cannot be relied on: ErrSignature, ErrSigner or, where
// its last decision is from the future, ErrEarly. at is when that decision was stored: the key
// must have been in use then. Clocks may differ by up to a minute.
func VerifyHead(h repute.SealedHead, at, now time.Time, keys []Key) error {
	if len(h.Signature) != crypto.SignatureLength {
		return fmt.Errorf("%w: malformed", ErrSignature)
	}
	signer, err := recoverSigner(headHash(h.DecisionsHead), [65]byte(h.Signature))
	if err != nil {
		return err
	}
	if signer != h.Signer {
		return fmt.Errorf("%w: it is by %s, not by %s", ErrSignature, signer.Hex(), h.Signer.Hex())
	}
	if ahead := at.Sub(now); ahead > skew {
		return fmt.Errorf("%w: its last decision is from %s, %s in the future", ErrEarly, at.UTC().Format(time.RFC3339),
			ahead.Round(time.Second))
	}
	err = trusted(signer, at, keys)
	if err != nil && trusted(signer, at.Add(skew), keys) == nil { // the signer's clock was ahead of the database's
		return nil
	}
	return err
}
