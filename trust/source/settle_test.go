package source

import (
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// undated is the shipped policy, where no log says since when AgentBook knows an address.
func undated(t *testing.T) *Policy {
	t.Helper()
	text := string(DefaultFile())
	from, to := strings.Index(text, "      events:\n        - contract: book"), strings.Index(text,
		"\n  - id: human-passport")
	text = text[:from] + text[to:]
	text = strings.Replace(text, "    ageDays: 365 # after the first binding", "    carryDays: 30\n    ageDays: 0 #", 1)
	p, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSettle(t *testing.T) {
	t.Parallel()
	p := undated(t)
	at := func(c Credential, when uint64) Credential {
		c.Issued, c.Read, c.Chain = when, when, 8453
		return c
	}
	book, gone := of(p, "agentbook", rater, 1), common.HexToAddress("0x3333333333333333333333333333333333333333")
	previous := []Credential{at(book, 100*day), at(of(p, "agentbook", gone, 2), 100*day),
		at(of(p, "bab", rater, 9), 100*day)}
	reading := func(status Status, when uint64, unknown []common.Address, found ...Credential) *Reading {
		return &Reading{State: State{Source: "agentbook", Chain: 8453, Status: status, Time: when}, Credentials: found,
			Unknown: unknown}
	}
	again := p.Settle(previous, reading(StatusOK, 101*day, nil, at(book, 101*day)))
	if len(again) != 1 || again[0].Issued != 100*day || again[0].Read != 101*day {
		t.Errorf("found again: %+v", again)
	}
	rebound := p.Settle(previous, reading(StatusOK, 101*day, nil, at(of(p, "agentbook", rater, 66), 101*day)))
	if len(rebound) != 1 || rebound[0].Subject != book.Subject || rebound[0].Issued != 100*day {
		t.Errorf("bound again by somebody else: %+v", rebound)
	}
	if kept := p.Settle(previous, reading(StatusIncomplete, 102*day, []common.Address{rater, gone})); len(kept) != 2 {
		t.Errorf("no answer for two days: %+v", kept)
	}
	for name, r := range map[string]*Reading{
		"no answer for longer": reading(StatusIncomplete, 103*day, []common.Address{rater, gone}),
		"a source that is off": reading(StatusOff, 103*day, []common.Address{rater}, at(book, 103*day)),
	} {
		lapsed := p.Settle(previous, r)
		if len(lapsed) != 2 || p.Counts(&lapsed[0], 110*day) != WhyLapsed || lapsed[1].Lapsed != 103*day {
			t.Errorf("%s: %+v", name, lapsed)
		}
		back := p.Settle(lapsed, reading(StatusOK, 104*day, nil, at(book, 104*day)))
		if len(back) != 1 || back[0].Issued != 100*day || p.Counts(&back[0], 107*day) != "" {
			t.Errorf("%s, then found again: %+v", name, back)
		}
		if late := p.Settle(lapsed, reading(StatusOff, 130*day+1, nil)); len(late) != 0 {
			t.Errorf("%s for longer than carryDays: %+v", name, late)
		}
	}
	lost := p.Settle(again, reading(StatusOK, 102*day, nil))
	if back := p.Settle(lost, reading(StatusOK, 103*day, nil, at(book, 103*day))); len(back) != 1 ||
		back[0].Issued != 103*day {
		t.Errorf("lost and found again: %+v", back)
	}
}

// A holder of an attestation who is attested anew before it ends keeps its weight, and the new attestation extends its
// age. Whose attestation was revoked or had expired before matures anew.
func TestRenewedAttestation(t *testing.T) {
	t.Parallel()
	p := shipped(t)
	attested := func(uid, issued, expires, revoked, read uint64) Credential {
		c := of(p, "coinbase-account", rater, uid)
		c.Issued, c.Expires, c.Revoked, c.Read, c.Chain = issued*day, expires*day, revoked*day, read*day, 8453
		return c
	}
	settle := func(old Credential, found Credential) Credential {
		t.Helper()
		held := p.Settle([]Credential{old}, &Reading{State: State{Source: "coinbase-account", Chain: 8453,
			Status: StatusOK,
			Time:   found.Read}, Credentials: []Credential{found}})
		if len(held) != 1 || held[0].Subject != found.Subject || held[0].Read != found.Read {
			t.Fatalf("%+v", held)
		}
		return held[0]
	}
	old := attested(1, 100, 800, 0, 399)
	now := settle(old, attested(2, 400, 1200, 0, 400))
	if now.Issued != 100*day || now.Renewed != 400*day || now.Expires != 1200*day || p.Counts(&now, 400*day) != "" {
		t.Errorf("renewed: %+v, %q", now, p.Counts(&now, 400*day))
	}
	for _, at := range []uint64{401, 765} { // read again, and a year after the renewal
		now = settle(now, attested(2, 400, 1200, 0, at))
		if now.Issued != 100*day || now.Renewed != 400*day || p.Counts(&now, at*day) != "" {
			t.Errorf("at day %d: %+v, %q", at, now, p.Counts(&now, at*day))
		}
	}
	if why := p.Counts(&now, 766*day); why != WhyAged {
		t.Errorf("longer than a year after the renewal: %q", why)
	}
	now = settle(now, attested(3, 766, 0, 0, 766))
	if now.Issued != 100*day || now.Renewed != 766*day || p.Counts(&now, 766*day) != "" {
		t.Errorf("renewed twice: %+v", now)
	}
	lapsed := old
	lapsed.Lapsed = 398 * day
	for name, old := range map[string]Credential{
		"revoked before": attested(1, 100, 0, 350, 399), "expired before": attested(1, 100, 399, 0, 398),
		"lapsed": lapsed} {
		if now := settle(old, attested(2, 400, 0, 0, 400)); now.Issued != 400*day ||
			p.Counts(&now, 400*day) != WhyMaturing {
			t.Errorf("%s: %+v", name, now)
		}
	}
	if now := settle(attested(1, 100, 0, 500, 399), attested(2, 400, 0, 0, 400)); now.Issued != 100*day {
		t.Errorf("revoked after the renewal: %+v", now)
	}
	p.Source("coinbase-account").Read.EAS.Attester = append(p.Source("coinbase-account").Read.EAS.Attester, rater)
	if now := settle(old, attested(2, 400, 0, 0, 400)); now.Issued != 400*day {
		t.Errorf("perhaps of another attester: %+v", now)
	}
}
