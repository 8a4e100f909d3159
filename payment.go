package repute

import (
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Stablecoin is a token of which one is worth one US dollar, by the operator's word.
type Stablecoin struct {
	ChainID  uint64
	Address  common.Address
	Symbol   string
	Decimals uint8
}

// Micros are millionths of a US dollar.
type Micros int64

// MaxPaid is the most that one payment counts for: a thousand million US dollars.
const MaxPaid Micros = 1e15

// Worth is what an amount of the coin's smallest units counts for, at most MaxPaid. What is
// below a millionth is dropped.
func (s Stablecoin) Worth(amount *big.Int) Micros {
	n := new(big.Int).Mul(amount, big.NewInt(1e6))
	n.Quo(n, pow10(int(s.Decimals)))
	if n.Cmp(big.NewInt(int64(MaxPaid))) > 0 {
		return MaxPaid
	}
	return Micros(n.Int64())
}

// PaymentState is how far the payment that a feedback file claims is known.
type PaymentState string

// States of payments.
const (
	PaymentPending     PaymentState = "pending"     // not looked up yet
	PaymentVerified    PaymentState = "verified"    // on the chain, final, and counted
	PaymentRefused     PaymentState = "refused"     // looked up, and not what it claims; see PaymentReason
	PaymentUnavailable PaymentState = "unavailable" // cannot be looked up now, and is tried again
)

// PaymentReason is why a payment is refused or unavailable.
type PaymentReason string

// Reasons for payments that are refused.
const (
	PaymentMalformed PaymentReason = "malformed"       // the file lacks a member, or one is no address, chain or hash
	PaymentNotPayer  PaymentReason = "not-the-client"  // the payer is neither the rater nor provably the same party
	PaymentSelf      PaymentReason = "self"            // the payer acts for the agent
	PaymentNotPayee  PaymentReason = "not-the-payee"   // the receiver was not the agent's wallet or declared payee
	PaymentNone      PaymentReason = "no-transfer"     // the transaction moved nothing from the one to the other
	PaymentUnlisted  PaymentReason = "unlisted-token"  // it moved a token that is on no list
	PaymentUsed      PaymentReason = "used"            // an earlier rating claims it
	PaymentCircular  PaymentReason = "circular"        // half of it or more came from the agent's side, or went back
	PaymentDust      PaymentReason = "dust"            // less than a millionth of a dollar
	PaymentAbsent    PaymentReason = "no-transaction"  // no endpoint knows the transaction, for long
	PaymentFailed    PaymentReason = "reverted"        // the transaction failed
	PaymentLater     PaymentReason = "after-the-claim" // paid after the rating was given
)

// Reasons for payments that are unavailable.
const (
	PaymentNotFollowed PaymentReason = "chain-not-followed" // nobody follows the chain it names
	PaymentNotFound    PaymentReason = "not-found"          // no endpoint knows the transaction yet
	PaymentNotFinal    PaymentReason = "not-final"          // its block is not final yet
	PaymentNoAnswer    PaymentReason = "no-answer"          // the endpoints do not answer
)

// TokenTransfer is one movement of a token, as its contract logged it.
type TokenTransfer struct {
	Tx              common.Hash
	Block, LogIndex uint64
	Token, From, To common.Address
	Amount          *big.Int
}

// Payment is what a rating's file claims to have been paid for what it rates, and what the
// chain says of that.
type Payment struct {
	State    PaymentState
	Reason   PaymentReason // "" when verified or pending
	ChainID  uint64        // where it was paid, 0 when the file does not say
	Tx       common.Hash
	From, To common.Address
	// The rest is of verified ones.
	Coin     Stablecoin
	Amount   Amount
	Paid     Micros // of it, what counts: less what came back
	Block    uint64
	LogIndex uint64
	Time     time.Time
}

// PaymentCase is all that a claimed payment is judged by.
type PaymentCase struct {
	From, To common.Address // as the file claims
	// Client is the rater and whoever is verifiably the same party, Payees whom the agent
	// was paid through at the time, Party who acts for the agent.
	Client, Payees, Party []common.Address
	// Paid is when the claimed transaction happened, Given when the rating was given; zero
	// when unknown.
	Paid, Given time.Time
	Coins       []Stablecoin    // of the chain
	Transfers   []TokenTransfer // of the claimed transaction, in any token, by log index
	// Taken tells of the transaction's logs which are counted for earlier ratings.
	Taken func(logIndex uint64) bool
	// Around are the movements of listed coins known of some time before and after.
	Around []TokenTransfer
}

// clockSkew is how much the clocks of two chains may differ.
const clockSkew = time.Minute

// Judge finds the transfer that is the claimed payment, and what of it counts: each
// transfer counts once, and what came from the agent's side or went back to the rater,
// directly or through one other, does not. The reason is "" when it counts.
func (c PaymentCase) Judge() (TokenTransfer, Micros, PaymentReason) {
	switch {
	case !slices.Contains(c.Client, c.From):
		return TokenTransfer{}, 0, PaymentNotPayer
	case c.From == c.To ||
		slices.ContainsFunc(c.Client, func(a common.Address) bool { return slices.Contains(c.Party, a) }):
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

// find gives the first transfer that fits and is not counted yet.
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

// back is what went from the agent's side to the rater's, directly or through one other.
func (c PaymentCase) back() (sum Micros) {
	agent := append(slices.Clone(c.Party), c.To)
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

// Payees are the addresses of a chain that a registration file names to be paid at: its
// services' accounts, and payTo of the file or of its x402. The file claims them.
func (r Registration) Payees(chainID uint64) (out []common.Address) {
	for _, account := range r.Wallets() {
		if account.ChainID == chainID {
			out = append(out, account.Address)
		}
	}
	var x402 struct{ PayTo json.RawMessage }
	_ = json.Unmarshal(r.Extra["x402"], &x402) // anything else names nobody
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

// RatingPayment says that from then on Paid counts for a rating, 0 for nothing more.
type RatingPayment struct {
	Client common.Address
	Index  uint64
	Paid   Micros
}
