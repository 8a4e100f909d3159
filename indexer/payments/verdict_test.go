package payments

import (
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/store/paydb"
)

// A claim that cannot be decided stays as it is and is tried again ever more seldom. Only a transaction that no
// endpoint has known for about a day is given up, and never one that was verified before.
func TestUndecidedClaims(t *testing.T) {
	t.Parallel()
	down, verified := errors.New("down"), repute.Payment{State: repute.PaymentVerified}
	for name, c := range map[string]struct {
		open   openError
		claim  paydb.Claim
		state  repute.PaymentState
		reason repute.PaymentReason
		again  bool
	}{
		"no endpoint answers": {openError{repute.PaymentNoAnswer, down}, paydb.Claim{Attempts: 500},
			repute.PaymentUnavailable, repute.PaymentNoAnswer, true},
		"not final": {openError{reason: repute.PaymentNotFinal}, paydb.Claim{Attempts: 500},
			repute.PaymentUnavailable, repute.PaymentNotFinal, true},
		"not found": {openError{reason: repute.PaymentNotFound}, paydb.Claim{Attempts: absentAfter - 2},
			repute.PaymentUnavailable, repute.PaymentNotFound, true},
		"not found for a day": {openError{reason: repute.PaymentNotFound}, paydb.Claim{Attempts: absentAfter - 1},
			repute.PaymentRefused, repute.PaymentAbsent, false},
		"verified, and no endpoint answers": {openError{repute.PaymentNoAnswer, down},
			paydb.Claim{Payment: verified, Attempts: 3}, "", "", true},
		"verified, and no endpoint knows it any more": {openError{reason: repute.PaymentNotFound},
			paydb.Claim{Payment: verified, Attempts: 500}, "", "", true},
	} {
		got := c.open.verdict(c.claim)
		if got.State != c.state || got.Reason != c.reason || got.Next > 0 != c.again || got.Next > retryMax {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for attempts := 1; attempts < 100; attempts++ {
		if later(attempts) < later(attempts-1) {
			t.Errorf("the pause after %d tries is shorter than the one before", attempts)
		}
	}
}

// Only what has the form of an ERC-20 transfer moves money: a token id is no amount.
func FuzzTransferOf(f *testing.F) {
	f.Add(transferTopic.Bytes(), 3, 32)
	f.Add(transferTopic.Bytes(), 4, 0)
	f.Add([]byte{1}, 3, 32)
	f.Fuzz(func(t *testing.T, first []byte, topics, size int) {
		l := types.Log{Data: make([]byte, uint(size)%100)}
		for range uint(topics) % 6 {
			l.Topics = append(l.Topics, common.BytesToHash(first))
		}
		transfer, ok := transferOf(&l)
		if want := len(l.Topics) == 3 && len(l.Data) == 32 && l.Topics[0] == transferTopic; ok != want {
			t.Fatalf("%t, want %t: %+v", ok, want, l)
		}
		if ok && (transfer.Amount == nil || transfer.Amount.Sign() != 0) {
			t.Fatalf("%+v", transfer)
		}
	})
}
