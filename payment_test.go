package repute_test

import (
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
)

func who(n byte) common.Address { return common.BytesToAddress([]byte{n}) }

const (
	client = iota + 1
	payee
	owner
	other
	usd
	euro
	own
)

// paying is a case that counts: 100 dollars from the client to the agent's wallet.
func paying() repute.PaymentCase {
	return repute.PaymentCase{From: who(client), To: who(payee),
		Client: []common.Address{who(client), who(own)}, Payees: []common.Address{who(payee)},
		Operators: []common.Address{who(owner), who(payee)},
		Coins:     []repute.Stablecoin{{Address: who(usd), Symbol: "USDC", Decimals: 6}},
		Transfers: []repute.TokenTransfer{moved(5, usd, client, payee, 100e6)},
	}
}

func moved(log uint64, token, from, to byte, amount int64) repute.TokenTransfer {
	return repute.TokenTransfer{LogIndex: log, Token: who(token), From: who(from), To: who(to),
		Amount: big.NewInt(amount)}
}

func TestJudgePayment(t *testing.T) {
	huge := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	for _, c := range []struct {
		name   string
		change func(*repute.PaymentCase)
		paid   repute.Micros
		log    uint64
		reason repute.PaymentReason
	}{
		{"fits", func(*repute.PaymentCase) {}, 100e6, 5, ""},
		{"from the client's own wallet", func(c *repute.PaymentCase) {
			c.From, c.Transfers[0].From = who(own), who(own)
		}, 100e6, 5, ""},
		{"of somebody else", func(c *repute.PaymentCase) { c.From = who(other) }, 0, 0, repute.PaymentNotPayer},
		{"to somebody else", func(c *repute.PaymentCase) { c.To = who(other) }, 0, 0, repute.PaymentNotPayee},
		{"by the owner", func(c *repute.PaymentCase) { c.Client = append(c.Client, who(owner)) }, 0, 0,
			repute.PaymentSelf},
		{"to itself", func(c *repute.PaymentCase) { c.To, c.Payees = c.From, c.Client }, 0, 0, repute.PaymentSelf},
		{"nothing moved", func(c *repute.PaymentCase) { c.Transfers = nil }, 0, 0, repute.PaymentNone},
		{"of others in the transaction", func(c *repute.PaymentCase) { c.Transfers[0].From = who(other) }, 0, 0,
			repute.PaymentNone},
		{"nothing", func(c *repute.PaymentCase) { c.Transfers[0].Amount = new(big.Int) }, 0, 0, repute.PaymentNone},
		{"in a token of no list", func(c *repute.PaymentCase) { c.Transfers[0].Token = who(euro) }, 0, 0,
			repute.PaymentUnlisted},
		{"counted before", func(c *repute.PaymentCase) { c.Taken = func(uint64) bool { return true } }, 0, 0,
			repute.PaymentUsed},
		{"the second of two", func(c *repute.PaymentCase) {
			c.Taken = func(log uint64) bool { return log == 5 }
			c.Transfers = append(c.Transfers, moved(6, usd, client, payee, 3e6))
		}, 3e6, 6, ""},
		{"less a fee", func(c *repute.PaymentCase) {
			c.Transfers = []repute.TokenTransfer{moved(5, usd, client, other, 1e6), moved(6, usd, client, payee, 99e6)}
		}, 99e6, 6, ""},
		{"10^30", func(c *repute.PaymentCase) { c.Transfers[0].Amount = huge }, repute.MaxPaid, 5, ""},
		{"after the rating", func(c *repute.PaymentCase) {
			c.Given = time.Unix(1000, 0)
			c.Paid = c.Given.Add(2 * time.Minute)
		}, 0, 0, repute.PaymentLater},
		{"dust", func(c *repute.PaymentCase) {
			c.Coins[0].Decimals = 18
			c.Transfers[0].Amount = big.NewInt(1e11)
		}, 0, 5, repute.PaymentDust},
		{"given back", func(c *repute.PaymentCase) {
			c.Around = []repute.TokenTransfer{moved(1, usd, payee, client,
				100e6)}
		}, 0, 5, repute.PaymentCircular},
		{"given by the owner before",
			func(c *repute.PaymentCase) { c.Around = []repute.TokenTransfer{moved(1, usd, owner, own, 50e6)} }, 0, 5,
			repute.PaymentCircular},
		{"given back through another", func(c *repute.PaymentCase) {
			c.Around = []repute.TokenTransfer{moved(1, usd, payee, other, 60e6), moved(2, usd, other, client, 90e6)}
		}, 0, 5, repute.PaymentCircular},
		{"partly given back", func(c *repute.PaymentCase) {
			c.Around = []repute.TokenTransfer{moved(1, usd, payee, other, 10e6), moved(2, usd, other, client, 90e6),
				moved(3, usd, payee, client, 5e6)}
		}, 85e6, 5, ""},
		{"given back in something else",
			func(c *repute.PaymentCase) { c.Around = []repute.TokenTransfer{moved(1, euro, payee, client, 100e6)} },
			100e6, 5,
			""},
		{"10^30 back", func(c *repute.PaymentCase) {
			back := moved(1, usd, payee, client, 1)
			back.Amount = huge
			c.Around = []repute.TokenTransfer{back, back}
		}, 0, 5, repute.PaymentCircular},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := paying()
			c.change(&k)
			found, paid, reason := k.Judge()
			if paid != c.paid || reason != c.reason || found.LogIndex != c.log {
				t.Errorf("log %d, %d paid, %q; want log %d, %d, %q", found.LogIndex, paid, reason, c.log, c.paid,
					c.reason)
			}
		})
	}
}

func TestRegistrationPayees(t *testing.T) {
	r := repute.Registration{
		Services: []repute.Service{{Name: "agentWallet",
			Endpoint: "eip155:8453:0x0000000000000000000000000000000000000001"},
			{Name: "agentWallet", Endpoint: "eip155:1:0x0000000000000000000000000000000000000002"}},
		Extra: map[string]json.RawMessage{"payTo": json.RawMessage(`"0x0000000000000000000000000000000000000003"`),
			"x402": json.RawMessage(`{"payTo": "eip155:8453:0x0000000000000000000000000000000000000004", "networks": []}`)},
	}
	want := []common.Address{who(1), who(3), who(4)}
	if got := r.Payees(8453); !slices.Equal(got, want) {
		t.Errorf("payees %v, want %v", got, want)
	}
	r.Extra = map[string]json.RawMessage{"payTo": json.RawMessage(`3`), "x402": json.RawMessage(`true`)}
	if got := r.Payees(8453); !slices.Equal(got, want[:1]) {
		t.Errorf("payees %v, want %v", got, want[:1])
	}
}

// TestParseDollars: what is written is read exactly, and nothing else is an amount.
func TestParseDollars(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := repute.Micros(rapid.Int64Range(0, 999_999_999_999_999).Draw(t, "millionths"))
		if got, err := repute.ParseDollars("max", m.String()); err != nil || got != m {
			t.Errorf("%s is read as %d: %v", m, got, err)
		}
	})
	for _, text := range []string{"", ".", ".5", "-1", "+1", "1e3", "1,5", "0.0000001", "1234567890", "1.2.3", " 1",
		"0x1", "١"} {
		if got, err := repute.ParseDollars("max", text); !errors.Is(err, repute.ErrInvalid) ||
			!strings.HasPrefix(err.Error(), "max:") {
			t.Errorf("%q is read as %d: %v", text, got, err)
		}
	}
}
