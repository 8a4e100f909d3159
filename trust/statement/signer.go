package statement

import (
	"crypto/ecdsa"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// Signer signs scores with one key. It is safe for concurrent use, and prints without
// the key.
type Signer struct {
	key     *ecdsa.PrivateKey
	life    time.Duration
	since   time.Time
	retired []Key
}

// NewSigner makes a signer whose statements are valid for life. The key is published from
// since on, zero: always; retired keys are published beside it.
func NewSigner(key *ecdsa.PrivateKey, life time.Duration, since time.Time, retired []Key) *Signer {
	return &Signer{key: key, life: life, since: since, retired: slices.Clone(retired)}
}

// ParseKey reads a private key of 64 hex digits, with or without 0x. The error is
// repute.ErrInvalid and does not show it.
func ParseKey(field, text string) (*ecdsa.PrivateKey, error) {
	key, err := crypto.HexToECDSA(strings.TrimPrefix(strings.TrimSpace(text), "0x"))
	if err != nil {
		return nil, repute.Invalid(field, "holds no private key", "64 hex digits, as repute keys new writes them")
	}
	return key, nil
}

// Since is from when on the key signs, zero: always.
func (s *Signer) Since() time.Time { return s.since }

// Address is the key's.
func (s *Signer) Address() common.Address { return crypto.PubkeyToAddress(s.key.PublicKey) }

// String names the signer by its address.
func (s *Signer) String() string { return "signer " + s.Address().Hex() }

// GoString is String.
func (s *Signer) GoString() string { return s.String() }

// Sign makes and signs the statement of a score that holds as of a block. It is issued at
// the begin of the quarter of its life that now is in, so that who asks again gets the same
// bytes, but not before that block. Errors are those
// of Of, and repute.ErrConflict before the key's time.
func (s *Signer) Sign(score repute.Score, holds HoldsAsOf, now time.Time) (Signed, error) {
	if now.Before(s.since) {
		return Signed{}, repute.Conflict("nothing is signed yet: the key signs from %s on",
			s.since.UTC().Format(time.RFC3339))
	}
	issued := now
	if begin := now.Truncate(s.life / 4); s.since.Before(begin) {
		issued = begin
	}
	if holds.Time.After(issued) {
		issued = holds.Time
		if issued.After(now) {
			issued = now
		}
	}
	statement, err := Of(score, holds, issued, s.life)
	if err != nil {
		return Signed{}, err
	}
	return Sign(statement, s.key)
}

// Keys are those to publish, the one in use first.
func (s *Signer) Keys() KeyList {
	return KeyList{append([]Key{{Address: s.Address(), From: s.since}}, s.retired...)}
}
