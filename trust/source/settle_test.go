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
	from, to := strings.Index(text, "      events:\n        - contract: book"), strings.Index(text, "\n  - id: human-passport")
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
	previous := []Credential{at(book, 100*day), at(of(p, "agentbook", gone, 2), 100*day), at(of(p, "bab", rater, 9), 100*day)}
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
