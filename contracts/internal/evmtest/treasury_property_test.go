package evmtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"
)

// movement is what left at a time, in Unix seconds.
type movement struct{ at, amount int64 }

// allowance is what a model knows of one cap: every movement there was.
type allowance struct {
	perTx, window int64
	moved         []movement
}

// within sums what left in the period of a length that ends with a time.
func (a *allowance) within(length, end int64) (sum int64) {
	for _, m := range a.moved {
		if m.at > end-length && m.at <= end {
			sum += m.amount
		}
	}
	return sum
}

// TestTreasuryWindowSlides moves all that a window allows at its end, and finds nothing left for
// another one behind the edge; what is left comes back as what was moved grows old.
func TestTreasuryWindowSlides(t *testing.T) {
	v := newVault(t)
	spend := func(amount int64) {
		t.Helper()
		v.send(client, v.at, call(stranger.addr, amount, nil))
		v.send(client, v.at, v.pay(stranger.addr, amount))
	}
	refuses := func(amount, left int64) {
		t.Helper()
		want := fmt.Sprintf("OverWindowCap(%d,%d)", amount, left)
		v.wantRevert(want, client, v.at, call(stranger.addr, amount, nil))
		v.wantRevert(want, client, v.at, v.pay(stranger.addr, amount))
	}
	spend(1) // a window that begins with the first movement
	v.pass(day - 10*time.Second)
	spend(100)
	spend(100)
	spend(49)
	refuses(1, 0)
	v.policy(agentKey, client.addr, 100, 250) // a policy that is set again frees nothing
	refuses(1, 0)
	v.pass(10 * time.Second) // the first movement has ended
	spend(1)
	refuses(1, 0)
	v.pass(day - 20*time.Second)
	refuses(1, 0)
	v.pass(20 * time.Second)
	if got := v.nativeLeft(); got != 100 {
		t.Errorf("%d wei may move when all have ended, want 100", got)
	}
	spend(100)
}

// TestTreasuryWindowGas has a window that is as full of movements as it can be.
func TestTreasuryWindowGas(t *testing.T) {
	v := newVault(t)
	var most uint64
	for range 20 {
		most = max(most, v.send(client, v.at, call(stranger.addr, 1, nil)).GasUsed)
		v.pass(day / 8)
	}
	if most > 140_000 {
		t.Errorf("a payment costs %d gas", most)
	}
	t.Logf("a payment costs at most %d gas", most)
}

// TestTreasuryCapsHold makes random calls by operator, relayer and stranger, with the owner
// changing caps and the length of windows and time passing, and compares each with a list of all
// movements: nothing leaves that would be over the cap with what left in the period before, and
// what would not be over it although movements counted for longer is not refused.
func TestTreasuryCapsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &treasuryModel{vault: newVault(t), rt: rt, native: &allowance{perTx: 100, window: 250},
			token:   &allowance{perTx: 100, window: 250},
			lengths: []length{{0, 86400}}}
		m.fund(m.at, 10_000)
		m.send(admin, m.vault.token, tokenABI.PackMint(m.at, n(10_000)))
		m.send(owner, m.at, treasuryABI.PackSetRelayer(agentKey, validator.addr, true))
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			rapid.SampledFrom([]func(){m.move, m.move, m.move, m.move, m.wait, m.wait, m.change, m.resize,
				m.pause}).Draw(rt,
				"step")()
		}
	})
}

type treasuryModel struct {
	*vault
	rt            *rapid.T
	native, token *allowance
	lengths       []length
	paused        bool
}

// length is how long windows are from a time on, in seconds.
type length struct{ from, seconds int64 }

func (m *treasuryModel) length() int64 { return m.lengths[len(m.lengths)-1].seconds }

// strict is the length of the period that must be within the cap: that of the window, or the
// shortest that was in force in it, as what had ended then need not be remembered.
func (m *treasuryModel) strict(now int64) int64 {
	out := m.length()
	for i, l := range m.lengths[:len(m.lengths)-1] {
		if m.lengths[i+1].from > now-m.length() {
			out = min(out, l.seconds)
		}
	}
	return out
}

// loose is for how long a movement counts at most: an eighth of a window, rounded up, longer than
// the window is. Where the length changed it may be as much as the longest one longer.
func (m *treasuryModel) loose() int64 {
	out := m.length() + (m.length()+7)/8
	if len(m.lengths) > 1 {
		for _, l := range m.lengths {
			out = max(out, m.length()+2*l.seconds)
		}
	}
	return out
}

// move tries to move native coin or tokens and checks what became of it.
func (m *treasuryModel) move() {
	a, data, balance := m.native, call, m.balance
	left := func() int64 { return m.nativeLeft() }
	if rapid.Bool().Draw(m.rt, "token") {
		a, balance = m.token, m.tokens
		data = func(to common.Address, amount int64, _ []byte) []byte { return m.pay(to, amount) }
		left = func() int64 {
			return get(m.world, m.at, treasuryABI.PackErc20Left(agentKey, m.vault.token),
				treasuryABI.UnpackErc20Left).Int64()
		}
	}
	from := rapid.SampledFrom([]party{client, client, validator, stranger}).Draw(m.rt, "from")
	amount := rapid.Int64Range(0, 130).Draw(m.rt, "amount")
	before, now := balance(m.at), m.now().Int64()+1 // time of the block that a call is in when it is made now
	if m.paused && left() != 0 {
		m.rt.Fatalf("%d is left while paused", left())
	}
	may := from != stranger && !m.paused && amount <= a.perTx
	if m.reverts(from, data(m.payee, amount, nil)) {
		if sum := a.within(m.loose(), now); may && sum+amount <= a.window {
			m.rt.Fatalf("%d was refused, with %d of %d moved", amount, sum, a.window)
		}
		return
	}
	m.send(from, m.at, data(m.payee, amount, nil))
	now = m.now().Int64()
	if got := before - balance(m.at); got != amount || !may {
		m.rt.Fatalf("%d moved by %s, want %d: %v", got, from.addr, amount, may)
	}
	if amount == 0 {
		return
	}
	a.moved = append(a.moved, movement{now, amount})
	if sum := a.within(m.strict(now), now); sum > a.window {
		m.rt.Fatalf("%d moved in one window, of %d", sum, a.window)
	}
}

// reverts reports whether a call of the treasury fails.
func (m *treasuryModel) reverts(from party, data []byte) bool {
	_, err := m.client.CallContract(m.t.Context(), ethereum.CallMsg{From: from.addr, To: &m.at, Data: data}, nil)
	return err != nil
}

// wait lets time pass, often to an edge of something: a window, or an eighth of one.
func (m *treasuryModel) wait() {
	eighths, off := rapid.Int64Range(0, 12).Draw(m.rt, "eighths"), rapid.Int64Range(-2, 2).Draw(m.rt, "seconds")
	if d := m.length()*eighths/8 + off; d > 0 {
		m.pass(time.Duration(d) * time.Second)
	}
}

// change sets other caps, which frees nothing that was moved.
func (m *treasuryModel) change() {
	perTx, window := rapid.Int64Range(0, 120).Draw(m.rt, "perTx"), rapid.Int64Range(0, 300).Draw(m.rt, "window")
	for _, a := range []*allowance{m.native, m.token} {
		a.perTx, a.window = perTx, window
	}
	m.set()
}

// resize makes windows longer or shorter. What was moved stays moved.
func (m *treasuryModel) resize() {
	was, before := m.spent(), m.length()
	seconds := rapid.SampledFrom([]int64{1, 7, 8, 60, 3600, 86400, 30 * 86400}).Draw(m.rt, "length")
	m.lengths = append(m.lengths, length{seconds: seconds})
	m.set()
	m.lengths[len(m.lengths)-1].from = m.now().Int64()
	if is := m.spent(); seconds > before && is < was {
		m.rt.Fatalf("a longer window counts %d, the shorter one counted %d", is, was)
	}
}

func (m *treasuryModel) set() {
	a := m.native
	m.send(owner, m.at, treasuryABI.PackSetPolicy(agentKey, true, client.addr, n(a.perTx), n(a.window), n(m.length())))
	m.send(owner, m.at, treasuryABI.PackSetToken(agentKey, m.vault.token, true, n(a.perTx), n(a.window)))
}

func (m *treasuryModel) spent() int64 {
	return get(m.world, m.at, treasuryABI.PackNativeWindow(agentKey), treasuryABI.UnpackNativeWindow).Spent.Int64()
}

func (m *treasuryModel) pause() {
	data := treasuryABI.PackPause()
	if m.paused {
		data = treasuryABI.PackUnpause()
	}
	m.send(owner, m.at, data)
	m.paused = !m.paused
}
