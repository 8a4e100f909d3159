// Package statement signs final scores so that others can rely on them offline, and verifies such statements. They are
// EIP-712 typed data: any Ethereum library can check one. docs/reference/statements.md defines them.
//
// A Statement says what an agent's score was at a final block, and as of which later block it was still the score: see
// HoldsAsOf. Of makes one of a stored score, and refuses scores that are provisional, of unknown time, or of blocks
// that are not verified. A Signer holds the key; it issues statements at fixed quarters of their life, so that
// everybody who asks meanwhile gets the same bytes. A Signed travels as JSON, which is the typed data with the
// signature beside it. UnmarshalJSON accepts only what MarshalJSON writes: another domain, other types or an unknown
// member are refused, as a verifier that ignores a member would accept what the signer did not mean.
//
// Verify needs the statement, a KeyList of the operator and the time, and neither a database nor a network. It checks
// signature, key, life and order of times; VerifyFor checks the agent and the age of the score too. Clocks may differ
// by a minute. A key has a time of use, so that it can be replaced without invalidating what it signed before.
//
// SealHead and VerifyHead do the same for the newest link of a task's chain of decisions, whose domain has neither
// chain nor contract.
package statement

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// Why a statement is not to be relied on.
var (
	// ErrSignature: it is not what was signed, or the signature is malformed.
	ErrSignature = errors.New("the signature is not of this statement")
	// ErrSigner: the key is not one that is trusted, or was not when it signed.
	ErrSigner = errors.New("signed by a key that is not trusted for it")
	// ErrExpired: it was true once.
	ErrExpired = errors.New("the statement has expired")
	// ErrAgent: it is about another agent.
	ErrAgent = errors.New("the statement is about another agent")
	// ErrOld: the block as of which the score holds is too old.
	ErrOld = errors.New("the statement's block is too old")
	// ErrUnverified: the blocks that the score follows from were not verified.
	ErrUnverified = errors.New("the statement's blocks are not verified")
	// ErrEarly: it was issued in the future, or is of a block after its own issue.
	ErrEarly = errors.New("the statement is not valid yet")
)

// MaxLife is the longest that a statement may be valid.
const MaxLife = 7 * 24 * time.Hour

// skew is how far the clocks of who signs and who verifies may differ.
const skew = time.Minute

// Statement says what an agent's score was at a final block. Times have whole seconds.
type Statement struct {
	Agent            repute.AgentID
	Status           repute.Status // of unrated ones Score, Low and High say nothing
	Score, Low, High repute.Points
	Confidence       int64 // millionths
	Tier             int
	// another agent limits this one: see docs/explanation/trust.md, Guard
	Guarded                              bool
	Block                                repute.Block // Parent is not part of it
	Holds                                HoldsAsOf
	Epoch                                uint64
	Scorer                               string // version of the engine
	Params, Tags, Roots, Links, Evidence common.Hash
	// Sources and Credentials are of the policy of sources and of what these said of raters, zero where none was asked.
	Sources, Credentials common.Hash
	FileScales           common.Hash // of what files of feedback say of scales, zero where none does
	IssuedAt, ExpiresAt  time.Time
}

// HoldsAsOf is the newest block as of which all final scores of the chain were known: a
// score that came out at an earlier one was still the agent's. VerifiedTo, not before Number, is the block up to which
// every block from the chain's start on was proven when that was known.
type HoldsAsOf struct {
	Number     uint64
	Time       time.Time
	VerifiedTo uint64
}

// Signed is a statement with its signature, as it travels; JSON is its form.
type Signed struct {
	Statement
	Signer    common.Address // who says to have signed; Verify tells whether that is so
	Signature [65]byte       // r, s, v; v is 27 or 28
}

// Of makes a statement of a stored score that holds as of a block, not before its own.
// repute.ErrConflict: the score is not final, the blocks are not verified, or a time of the two blocks is unknown or in
// the future; repute.ErrInvalid: life is not above 0 or too long. Other errors are of a
// stored result that cannot be read.
func Of(s repute.Score, holds HoldsAsOf, issued time.Time, life time.Duration) (Statement, error) {
	switch {
	case !s.Final:
		return Statement{}, repute.Conflict("the score of agent %s is provisional: only final ones are signed",
			s.Agent.Short())
	case s.Block.Time.IsZero():
		return Statement{}, repute.Conflict("the time of block %d is unknown: its scores are not signed",
			s.Block.Number)
	case holds.Time.IsZero() || holds.Number < s.Block.Number || holds.Time.Before(s.Block.Time):
		return Statement{}, repute.Conflict(
			"the score of agent %s is of block %d, and it is unknown when it held as of block %d", s.Agent.Short(),
			s.Block.Number, holds.Number)
	case holds.VerifiedTo < holds.Number:
		return Statement{}, repute.Conflict(
			"blocks are verified up to %d only, and the score of agent %s holds as of block %d: it is not signed",
			holds.VerifiedTo, s.Agent.Short(), holds.Number)
	case holds.Time.After(issued.Add(skew)):
		return Statement{}, repute.Conflict("the time of block %d is in the future: scores as of it are not signed",
			holds.Number)
	case life < time.Second || life > MaxLife:
		return Statement{}, repute.Invalid("lifetime", life.String()+" is out of range", "1s to 168h")
	}
	var result struct {
		Guard *struct{} `json:"guard"`
	}
	if err := json.Unmarshal(s.Result, &result); err != nil {
		return Statement{}, fmt.Errorf("stored result of agent %s: %w", s.Agent.Short(), err)
	}
	issued = issued.UTC().Truncate(time.Second)
	return Statement{Agent: s.Agent, Status: s.Status, Score: s.Score, Low: s.Low, High: s.High,
		Confidence: s.Confidence,
		Tier:       s.Tier, Guarded: result.Guard != nil,
		Block: repute.Block{Number: s.Block.Number, Hash: s.Block.Hash, Time: s.Block.Time.UTC()},
		Holds: HoldsAsOf{holds.Number, holds.Time.UTC(), holds.VerifiedTo}, Epoch: s.Epoch, Scorer: s.Scorer,
		Sources: s.Sources, Credentials: s.Credentials, FileScales: s.FileScales,
		Params: s.Params, Tags: s.Tags, Roots: s.Roots, Links: s.Links, Evidence: s.Evidence,
		IssuedAt: issued, ExpiresAt: issued.Add(life)}, nil
}

// Sign signs a statement.
func Sign(s Statement, key *ecdsa.PrivateKey) (Signed, error) {
	hash := s.Hash()
	signature, err := crypto.Sign(hash[:], key)
	if err != nil {
		return Signed{}, fmt.Errorf("sign: %w", err)
	}
	out := Signed{Statement: s, Signer: crypto.PubkeyToAddress(key.PublicKey)}
	copy(out.Signature[:], signature)
	out.Signature[64] += 27
	return out, nil
}

// Recover gives the address whose key signed. ErrSignature: none did, or the signature has
// a second form, which is refused.
func (s Signed) Recover() (common.Address, error) { return recoverSigner(s.Hash(), s.Signature) }

// recoverSigner gives the address whose key made a signature of a hash.
func recoverSigner(hash common.Hash, signature [65]byte) (common.Address, error) {
	r, v := new(big.Int).SetBytes(signature[:32]), signature[64]
	if v != 27 && v != 28 || !crypto.ValidateSignatureValues(v-27, r, new(big.Int).SetBytes(signature[32:64]), true) {
		return common.Address{}, fmt.Errorf("%w: malformed", ErrSignature)
	}
	signature[64] -= 27
	key, err := crypto.SigToPub(hash[:], signature[:])
	if err != nil {
		return common.Address{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return crypto.PubkeyToAddress(*key), nil
}

// Key is one that signs statements.
type Key struct {
	Address common.Address
	// From and To bound when statements of it were issued, To excluded; zero: no bound.
	From, To time.Time
}

// holds reports whether the key may have signed something at that time.
func (k Key) holds(issued time.Time) bool {
	return (k.From.IsZero() || !issued.Before(k.From)) && (k.To.IsZero() || issued.Before(k.To))
}

// Verify tells why a statement is not to be relied on at a time: ErrSignature, ErrSigner,
// ErrExpired, ErrUnverified or ErrEarly. nil: one of the keys signed exactly this, and it is valid now.
// VerifyFor compares the agent and the age of the block as of which it holds too.
func Verify(s Signed, keys []Key, now time.Time) error {
	signer, err := s.Recover()
	if err != nil {
		return err
	}
	if signer != s.Signer {
		return fmt.Errorf("%w: it is by %s, not by %s", ErrSignature, signer.Hex(), s.Signer.Hex())
	}
	if err := trusted(signer, s.IssuedAt, keys); err != nil {
		return err
	}
	switch {
	case s.ExpiresAt.Sub(s.IssuedAt) > MaxLife || !s.ExpiresAt.After(s.IssuedAt):
		return fmt.Errorf("%w: valid for %s", ErrExpired, s.ExpiresAt.Sub(s.IssuedAt))
	case s.IssuedAt.After(now.Add(skew)):
		return fmt.Errorf("%w: issued at %s", ErrEarly, s.IssuedAt.Format(time.RFC3339))
	case s.Holds.Time.After(s.IssuedAt.Add(skew)) || s.Block.Time.After(s.Holds.Time) ||
		s.Block.Number > s.Holds.Number:
		return fmt.Errorf("%w: block %d is of %s, it holds as of block %d of %s, and was issued at %s", ErrEarly,
			s.Block.Number,
			s.Block.Time.Format(time.RFC3339), s.Holds.Number, s.Holds.Time.Format(time.RFC3339),
			s.IssuedAt.Format(time.RFC3339))
	case s.Holds.VerifiedTo < s.Holds.Number:
		return fmt.Errorf("%w: they are verified up to %d, and it holds as of block %d", ErrUnverified,
			s.Holds.VerifiedTo,
			s.Holds.Number)
	case !now.Before(s.ExpiresAt):
		return fmt.Errorf("%w at %s", ErrExpired, s.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}

// VerifyFor is Verify for a caller that deals with an agent. It also fails with ErrAgent if the score is of another
// agent, and with ErrOld if the block as of which it holds is older than maxAge. A maxAge of 0 accepts any age.
func VerifyFor(s Signed, agent repute.AgentID, maxAge time.Duration, keys []Key, now time.Time) error {
	if err := Verify(s, keys, now); err != nil {
		return err
	}
	if s.Agent != agent {
		return fmt.Errorf("%w: %s, not %s", ErrAgent, s.Agent, agent)
	}
	if age := now.Sub(s.Holds.Time); maxAge > 0 && age > maxAge {
		return fmt.Errorf("%w: it holds as of block %d of %s", ErrOld, s.Holds.Number,
			s.Holds.Time.UTC().Format(time.RFC3339))
	}
	return nil
}

// trusted is nil where one of the keys is the signer's and was in use; otherwise it says
// when it is, if ever.
func trusted(signer common.Address, issued time.Time, keys []Key) error {
	err := fmt.Errorf("%w: %s", ErrSigner, signer.Hex())
	for _, k := range keys {
		switch {
		case k.Address != signer:
		case k.holds(issued):
			return nil
		case issued.Before(k.From):
			err = fmt.Errorf("%w: %s: the key is valid from %s", ErrSigner, signer.Hex(),
				k.From.UTC().Format(time.RFC3339))
		default:
			err = fmt.Errorf("%w: %s: the key was valid until %s", ErrSigner, signer.Hex(),
				k.To.UTC().Format(time.RFC3339))
		}
	}
	return err
}
