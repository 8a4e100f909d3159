package x402

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"
)

// Signer signs EIP-712 data with the key of an account.
type Signer interface {
	Address() common.Address
	SignTyped(ctx context.Context, data apitypes.TypedData) ([]byte, error)
}

// ErrCannotPay is returned where none of the demanded ways to pay is supported.
var ErrCannotPay = errors.New("none of the demanded ways to pay is supported")

// skew is by how much the clocks of payer and chain may differ: an authorization holds from so long before it was
// signed.
const skew = 10 * time.Minute

// Pay signs a payment for one of a demand's requirements, which are echoed as they were given. It
// may be settled until now + MaxTimeoutSeconds. Every call makes another payment, with a nonce of
// its own: to ask again for the same answer, send the same payment again.
func Pay(ctx context.Context, s Signer, d *PaymentRequired, version int, r Requirements, now time.Time) (p Payment,
	err error) {
	if err := r.Check(); err != nil {
		return p, fmt.Errorf("%w: %w", ErrCannotPay, err)
	}
	p = Payment{Version: version, Accepted: r}
	if version == V2 {
		p.Resource, p.Extensions = &d.Resource, d.Extensions
	}
	terms, err := r.Terms()
	if err != nil {
		return p, err
	}
	chain, _ := ChainOf(r.Network) // checked
	if r.Scheme == SchemeUpto || terms.Method == MethodPermit2 {
		if p.Payload.Permit2, err = newPermit(s.Address(), &r, &terms, now); err != nil {
			return p, err
		}
	} else {
		p.Payload.Authorization = newAuthorization(s.Address(), &r, now)
	}
	if p.Payload.Signature, err = s.SignTyped(ctx, p.Payload.data(chain, r.Asset, &terms)); err != nil {
		return p, fmt.Errorf("sign payment: %w", err)
	}
	if len(p.Payload.Signature) == signatureSize && p.Payload.Signature[64] < 2 {
		p.Payload.Signature[64] += 27 // the form that tokens take
	}
	return p, nil
}

// newAuthorization is a transfer by EIP-3009.
func newAuthorization(from common.Address, r *Requirements, now time.Time) *Authorization {
	a := &Authorization{From: from, To: r.PayTo, Value: r.Amount, ValidAfter: NewAmount(seconds(now.Add(-skew))),
		ValidBefore: NewAmount(seconds(now) + uint64(r.MaxTimeoutSeconds))}
	rand.Read(a.Nonce[:]) // never fails
	return a
}

// newPermit is a transfer by Permit2.
func newPermit(from common.Address, r *Requirements, terms *Extra, now time.Time) (*Permit, error) {
	p := &Permit{From: from, Permitted: Permitted{r.Asset, r.Amount}, Spender: ExactProxy,
		Deadline: NewAmount(seconds(now) + uint64(r.MaxTimeoutSeconds)),
		Witness:  Witness{To: r.PayTo, ValidAfter: NewAmount(seconds(now.Add(-skew)))}}
	if r.Scheme == SchemeUpto {
		if terms.Facilitator == nil {
			return nil, fmt.Errorf("%w: extra.facilitatorAddress is missing, which the scheme upto needs", ErrCannotPay)
		}
		p.Spender, p.Witness.Facilitator = UptoProxy, terms.Facilitator
	}
	var nonce [32]byte
	rand.Read(nonce[:]) // never fails
	p.Nonce.n.SetBytes32(nonce[:])
	return p, nil
}

// seconds since 1970, 0 before.
func seconds(t time.Time) uint64 { return uint64(max(0, t.Unix())) }
