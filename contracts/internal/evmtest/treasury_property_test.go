package evmtest

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// allowance is what a model knows of one cap: the rules in the words of the standard,
// beside the contract's code.
type allowance struct {
	perTx, window int64
	start         int64 // of the window, Unix seconds
	spent         int64
	moved         int64 // in this window, counted by balances
	most          int64 // highest window cap that was in force in this window
}

// open ends a window that has expired.
func (a *allowance) open(now int64, length time.Duration) {
	if now >= a.start+int64(length/time.Second) {
		a.start, a.spent, a.moved, a.most = now, 0, 0, a.window
	}
}

// takes tells whether an amount passes.
func (a *allowance) takes(amount int64) bool { return amount <= a.perTx && a.spent+amount <= a.window }

// TestTreasuryCapsHold makes random calls by operator, relayer and stranger, with the owner
// changing caps and time passing, and compares each with a model: in no window
// does more leave than the highest cap that the owner had set in it.
func TestTreasuryCapsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &treasuryModel{vault: newVault(t), rt: rt, native: &allowance{perTx: 100, window: 250, most: 250}, token: &allowance{perTx: 100, window: 250, most: 250}}
		m.fund(m.at, 10_000)
		m.send(admin, m.vault.token, tokenABI.PackMint(m.at, n(10_000)))
		m.send(owner, m.at, treasuryABI.PackSetRelayer(agentKey, validator.addr, true))
		for range rapid.IntRange(1, 14).Draw(rt, "steps") {
			rapid.SampledFrom([]func(){m.move, m.move, m.move, m.wait, m.reset, m.change, m.pause}).Draw(rt, "step")()
		}
	})
}

type treasuryModel struct {
	*vault
	rt            *rapid.T
	native, token *allowance
	paused        bool
}

// move tries to move native coin or tokens and checks what became of it.
func (m *treasuryModel) move() {
	a, data, balance := m.native, call, m.balance
	if rapid.Bool().Draw(m.rt, "token") {
		a, balance = m.token, m.tokens
		data = func(to common.Address, amount int64, _ []byte) []byte { return m.pay(to, amount) }
	}
	from := rapid.SampledFrom([]party{client, validator, stranger}).Draw(m.rt, "from")
	amount := rapid.Int64Range(0, 130).Draw(m.rt, "amount")
	before := balance(m.at)
	if from != stranger && !m.paused {
		next := *a
		next.open(m.next(), day)
		if next.takes(amount) {
			m.send(from, m.at, data(m.payee, amount, nil))
			next = *a
			next.open(m.now().Int64(), day)
			*a = next
			a.spent += amount
			a.moved += before - balance(m.at)
			if before-balance(m.at) != amount {
				m.rt.Fatalf("%d moved, want %d", before-balance(m.at), amount)
			}
			if a.moved > a.most {
				m.rt.Fatalf("%d moved in one window, of %d", a.moved, a.most)
			}
			return
		}
	}
	if got := m.revert(from, m.at, data(m.payee, amount, nil)); got == "" {
		m.rt.Fatalf("%d by %s was not refused", amount, from.addr)
	}
}

// next is the time of the block that a call is in when it is made now.
func (m *treasuryModel) next() int64 { return m.now().Int64() + 1 }

func (m *treasuryModel) wait() {
	hours := rapid.IntRange(1, 30).Draw(m.rt, "hours")
	m.pass(time.Duration(hours) * time.Hour)
}

// reset is what anybody may call at any time.
func (m *treasuryModel) reset() {
	m.send(stranger, m.at, treasuryABI.PackResetNativeWindowIfNeeded(agentKey))
	m.native.open(m.now().Int64(), day)
	m.send(stranger, m.at, treasuryABI.PackResetERC20WindowIfNeeded(agentKey, m.vault.token))
	m.token.open(m.now().Int64(), day)
}

// change sets other caps, which opens no window.
func (m *treasuryModel) change() {
	perTx, window := rapid.Int64Range(0, 120).Draw(m.rt, "perTx"), rapid.Int64Range(0, 300).Draw(m.rt, "window")
	m.policy(agentKey, client.addr, perTx, window)
	m.send(owner, m.at, treasuryABI.PackSetToken(agentKey, m.vault.token, true, n(perTx), n(window)))
	for _, a := range []*allowance{m.native, m.token} {
		a.perTx, a.window, a.most = perTx, window, max(a.most, window)
	}
}

func (m *treasuryModel) pause() {
	data := treasuryABI.PackPause()
	if m.paused {
		data = treasuryABI.PackUnpause()
	}
	m.send(owner, m.at, data)
	m.paused = !m.paused
}
