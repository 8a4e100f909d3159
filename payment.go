package repute

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Stablecoin is a token that the operator declares to be worth one US dollar.
type Stablecoin struct {
	ChainID  uint64
	Address  common.Address
	Symbol   string
	Decimals uint8
}

// Micros are millionths of a US dollar.
type Micros int64

// MaxPaid is the largest amount that one payment counts for: a thousand million US dollars.
const MaxPaid Micros = 1e15

// Worth returns the value of an amount in the coin's smallest units, at most MaxPaid. Fractions of
// a millionth are dropped.
func (s Stablecoin) Worth(amount *big.Int) Micros {
	n := new(big.Int).Mul(amount, big.NewInt(1e6))
	n.Quo(n, pow10(int(s.Decimals)))
	if n.Cmp(big.NewInt(int64(MaxPaid))) > 0 {
		return MaxPaid
	}
	return Micros(n.Int64())
}

// PaymentState is the state of the payment that a feedback file claims.
type PaymentState string

// States of payments.
const (
	PaymentPending     PaymentState = "pending"     // not looked up yet
	PaymentVerified    PaymentState = "verified"    // on the chain, final, and counted
	PaymentRefused     PaymentState = "refused"     // examined, and the claim is not true; see PaymentReason
	PaymentUnavailable PaymentState = "unavailable" // cannot be looked up now, and is tried again
)

// PaymentReason is the reason why a payment is refused or unavailable.
type PaymentReason string

// Reasons for payments that are refused.
const (
	PaymentMalformed PaymentReason = "malformed"       // the file lacks a member, or one is not an address, chain or hash
	PaymentNotPayer  PaymentReason = "not-the-client"  // the payer is neither the rater nor provably the same identity
	PaymentSelf      PaymentReason = "self"            // the payer acts for the agent
	PaymentNotPayee  PaymentReason = "not-the-payee"   // the receiver was not the agent's wallet or declared payee
	PaymentNone      PaymentReason = "no-transfer"     // the transaction has no transfer from payer to payee
	PaymentUnlisted  PaymentReason = "unlisted-token"  // it moved a token that is on no list
	PaymentUsed      PaymentReason = "used"            // an earlier rating claims it
	PaymentCircular  PaymentReason = "circular"        // half of it or more came from the agent's side, or was returned
	PaymentDust      PaymentReason = "dust"            // less than a millionth of a dollar
	PaymentAbsent    PaymentReason = "no-transaction"  // no endpoint knows the transaction, for long
	PaymentFailed    PaymentReason = "reverted"        // the transaction failed
	PaymentLater     PaymentReason = "after-the-claim" // paid after the rating was given
)

// Reasons for payments that are unavailable.
const (
	PaymentNotFollowed PaymentReason = "chain-not-followed" // the chain is not followed
	PaymentNotFound    PaymentReason = "not-found"          // no endpoint knows the transaction yet
	PaymentNotFinal    PaymentReason = "not-final"          // its block is not final yet
	PaymentNoAnswer    PaymentReason = "no-answer"          // the endpoints do not answer
)

// TokenTransfer is one Transfer event of a token.
type TokenTransfer struct {
	Tx              common.Hash
	Block, LogIndex uint64
	Token, From, To common.Address
	Amount          *big.Int
}

// Payment is the payment that a rating's file claims, and its state on the chain.
type Payment struct {
	State    PaymentState
	Reason   PaymentReason // "" when verified or pending
	ChainID  uint64        // chain of the payment, 0 when the file names none
	Tx       common.Hash
	From, To common.Address
	// The following fields are set for verified payments.
	Coin     Stablecoin
	Amount   Amount
	Paid     Micros // the part that counts: the amount less the returned part
	Block    uint64
	LogIndex uint64
	Time     time.Time
}

// PaymentCase has all facts by which a claimed payment is decided.
type PaymentCase struct {
	From, To common.Address // as the file claims
	// Client is the rater with all addresses of the same verified identity, Payees are the
	// addresses through which the agent was paid at the time, Operators those that act for the
	// agent.
	Client, Payees, Operators []common.Address
	// Paid is the time of the claimed transaction, Given the time of the rating; zero when unknown.
	Paid, Given time.Time
	Coins       []Stablecoin    // of the chain
	Transfers   []TokenTransfer // of the claimed transaction, in any token, by log index
	// Taken reports whether a log of the transaction counts for an earlier rating.
	Taken func(logIndex uint64) bool
	// Around are known transfers of listed coins before and after the payment.
	Around []TokenTransfer
}

// clockSkew is the largest assumed difference between the clocks of two chains.
const clockSkew = time.Minute

// Judge returns the transfer that is the claimed payment, and the part of it that counts: each
// transfer counts once, and money that came from the agent's side or was returned to the rater,
// directly or through one other address, does not count. The reason is "" when the payment counts.
func (c PaymentCase) Judge() (TokenTransfer, Micros, PaymentReason) {
	switch {
	case !slices.Contains(c.Client, c.From):
		return TokenTransfer{}, 0, PaymentNotPayer
	case c.From == c.To ||
		slices.ContainsFunc(c.Client, func(a common.Address) bool { return slices.Contains(c.Operators, a) }):
		return TokenTransfer{}, 0, PaymentSelf
	case !slices.Contains(c.Payees, c.To):
		return TokenTransfer{}, 0, PaymentNotPayee
	case !c.Paid.IsZero() && !c.Given.IsZero() && c.Paid.After(c.Given.Add(clockSkew)):
		return TokenTransfer{}, 0, PaymentLater
	}
	t, reason := c.find()
	if reason != "" {
		return t, 0, reason
	}
	coin, _ := CoinOf(c.Coins, t.Token)
	paid := coin.Worth(t.Amount)
	if paid == 0 {
		return t, 0, PaymentDust
	}
	back := c.back()
	if back >= paid-paid/2 {
		return t, 0, PaymentCircular
	}
	return t, paid - back, ""
}

// find returns the first matching transfer that does not count already.
func (c PaymentCase) find() (TokenTransfer, PaymentReason) {
	reason := PaymentNone
	for _, t := range c.Transfers {
		if t.From != c.From || t.To != c.To || t.Amount.Sign() <= 0 {
			continue
		}
		_, listed := CoinOf(c.Coins, t.Token)
		switch {
		case !listed && reason == PaymentNone:
			reason = PaymentUnlisted
		case listed && c.Taken != nil && c.Taken(t.LogIndex):
			reason = PaymentUsed
		case listed:
			return t, ""
		}
	}
	return TokenTransfer{}, reason
}

// back returns the sum of transfers from the agent's side to the rater's, directly or through one
// other address.
func (c PaymentCase) back() (sum Micros) {
	agent := append(slices.Clone(c.Operators), c.To)
	in, out := map[common.Address]Micros{}, map[common.Address]Micros{}
	for _, t := range c.Around {
		coin, listed := CoinOf(c.Coins, t.Token)
		if !listed {
			continue
		}
		worth := coin.Worth(t.Amount)
		switch from, to := slices.Contains(agent, t.From), slices.Contains(c.Client, t.To); {
		case from && to:
			sum = min(MaxPaid, sum+worth)
		case from && !slices.Contains(agent, t.To):
			in[t.To] = min(MaxPaid, in[t.To]+worth)
		case to && !slices.Contains(c.Client, t.From):
			out[t.From] = min(MaxPaid, out[t.From]+worth)
		}
	}
	for through, worth := range in { // a sum: order does not matter
		sum = min(MaxPaid, sum+min(worth, out[through]))
	}
	return sum
}

// CoinOf finds a listed coin by its contract.
func CoinOf(coins []Stablecoin, token common.Address) (Stablecoin, bool) {
	i := slices.IndexFunc(coins, func(s Stablecoin) bool { return s.Address == token })
	if i < 0 {
		return Stablecoin{}, false
	}
	return coins[i], true
}

// Payees returns the addresses of a chain at which a registration file asks to be paid: its
// services' accounts, and payTo of the file or of its x402. The file only claims them.
func (r Registration) Payees(chainID uint64) (out []common.Address) {
	for _, account := range r.Wallets() {
		if account.ChainID == chainID {
			out = append(out, account.Address)
		}
	}
	var x402 struct{ PayTo json.RawMessage }
	_ = json.Unmarshal(r.Extra["x402"], &x402) // any other form names no address
	for _, raw := range []json.RawMessage{r.Extra["payTo"], x402.PayTo} {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			continue
		}
		if account, err := ParseAccount(text); err == nil && account.ChainID == chainID {
			out = append(out, account.Address)
		} else if common.IsHexAddress(text) && len(text) == 2+2*common.AddressLength {
			out = append(out, common.HexToAddress(text))
		}
	}
	return out
}

// String writes dollars exactly, e.g. "12.5".
func (m Micros) String() string { return Amount{big.NewInt(int64(m)), 6}.Decimal() }

// ParseDollars reads an amount of US dollars exactly, e.g. "0.05". The error is ErrInvalid and names
// the field.
func ParseDollars(field, text string) (Micros, error) {
	whole, fraction, _ := strings.Cut(text, ".")
	if whole != "" && len(whole) <= 9 && len(fraction) <= 6 && strings.Trim(whole+fraction, "0123456789") == "" {
		if n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 64); err == nil {
			return Micros(n), nil
		}
	}
	return 0, Invalid(field, fmt.Sprintf("%.40q is no amount", text), "dollars, at most six digits after the point")
}

// RatingPayment sets the amount that counts for a rating, 0 for none.
type RatingPayment struct {
	Client common.Address
	Index  uint64
	Paid   Micros
}
