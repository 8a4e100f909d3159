package x402

import (
	"errors"
	"fmt"
)

// Reason is why a payment is refused, as facilitators say it (section 9 of the specification, and
// the schemes' own documents). Answers of others may have any text.
type Reason string

// Reasons that this package gives.
const (
	ReasonInsufficientFunds   Reason = "insufficient_funds"
	ReasonValidAfter          Reason = "invalid_exact_evm_payload_authorization_valid_after"
	ReasonValidBefore         Reason = "invalid_exact_evm_payload_authorization_valid_before"
	ReasonValue               Reason = "invalid_exact_evm_payload_authorization_value_mismatch"
	ReasonSignature           Reason = "invalid_exact_evm_payload_signature"
	ReasonRecipient           Reason = "invalid_exact_evm_payload_recipient_mismatch"
	ReasonInvalidNetwork      Reason = "invalid_network"
	ReasonInvalidPayload      Reason = "invalid_payload"
	ReasonInvalidRequirements Reason = "invalid_payment_requirements"
	ReasonInvalidScheme       Reason = "invalid_scheme"
	ReasonUnsupportedScheme   Reason = "unsupported_scheme"
	ReasonInvalidVersion      Reason = "invalid_x402_version"
	// ReasonTransactionState: the transfer would fail, or it failed.
	ReasonTransactionState Reason = "invalid_transaction_state"
	ReasonVerify           Reason = "unexpected_verify_error"
	ReasonSettle           Reason = "unexpected_settle_error"
	// ReasonNonceUsed: the authorization was used or canceled.
	ReasonNonceUsed Reason = "invalid_exact_evm_nonce_already_used"
	// ReasonAllowance: the payer has not approved the token for Permit2. Servers answer 412.
	ReasonAllowance Reason = "permit2_allowance_required"
	ReasonSpender   Reason = "invalid_permit2_spender"
	// ReasonExceedsAmount: more is to be charged than the payer signed for (upto).
	ReasonExceedsAmount Reason = "invalid_upto_evm_payload_settlement_exceeds_amount"
	// ReasonFacilitator: the payer signed for another facilitator (upto).
	ReasonFacilitator Reason = "upto_facilitator_mismatch"
)

// Refusal is the error of a payment that is not accepted. It is final: the same payment is refused
// again unless the chain changes.
type Refusal struct {
	Reason  Reason
	Message string // what is wrong and what is allowed; may be shown to the payer
	Payer   string // address, "" where it is not known
}

// Error reads "reason: message".
func (r *Refusal) Error() string {
	if r.Message == "" {
		return string(r.Reason)
	}
	return string(r.Reason) + ": " + r.Message
}

// Refuse returns a *Refusal.
func Refuse(reason Reason, format string, args ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// ErrUnknownEnd is returned where it is not known whether a payment was or will be settled: the
// facilitator did not answer, or the transaction is not confirmed. The same payment MUST be sent
// again, never another one for the same request. Servers answer 503.
var ErrUnknownEnd = errors.New("the end of the settlement is not known: send the same payment again")

// ErrUnavailable is returned where nobody can tell now whether a payment is valid.
var ErrUnavailable = errors.New("payments cannot be verified now")

// ErrReverted is returned by a Chain where the contract refuses the call.
var ErrReverted = errors.New("the contract refused the call")
