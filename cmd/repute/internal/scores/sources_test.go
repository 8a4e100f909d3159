package scores

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/source"
)

// defaults returns the policy of sources that repute comes with.
func defaults(t *testing.T) *source.Policy {
	t.Helper()
	p, err := source.Default()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A source that no run has read is unread. One that was read has the state of the last reading, and its holders are the
// raters whose credentials have not lapsed.
func TestViewOfSource(t *testing.T) {
	t.Parallel()
	s := defaults(t).Source("coinbase-account")
	if v := viewOf(s, 1, source.Past{}); v.State != "unread" || v.Time != nil || v.Block != 0 || v.Home != 8453 ||
		v.ChainID != 1 || v.Weight != "0.50" || v.Price == nil {
		t.Errorf("never read: %+v", v)
	}
	past := source.Past{States: []source.State{{Source: "other", Status: source.StatusOff}, {Source: s.ID,
		Status: source.StatusIncomplete, Reason: "no route", Block: 7, Time: 1_700_000_000}},
		Credentials: []source.Credential{{Source: s.ID, Rater: common.Address{1}},
			{Source: s.ID, Rater: common.Address{2}, Lapsed: 5}, {Source: "other", Rater: common.Address{3}}}}
	v := viewOf(s, 8453, past)
	if v.State != "incomplete" || v.Reason != "no route" || v.Block != 7 || v.Holders != 1 ||
		!v.Time.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("read: %+v", v)
	}
}

// The table of sources has the age of the last reading, and a reason of a node cannot act on a terminal.
func TestPrintSources(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	read := now.Add(-90 * time.Second)
	s := defaults(t).Source("coinbase-account")
	views := []sourceView{viewOf(s, 8453, source.Past{}), {ChainID: 1, ID: "a", Class: "C", Weight: "0.10", Home: 8453,
		Holders: 3, State: "incomplete", Reason: "\x1b[2Jno", Block: 7, Time: &read}}
	const want = "CHAIN  SOURCE            CLASS  WEIGHT  PRICE             READ ON  HOLDERS  STATE\n" +
		"8453   coinbase-account  A      0.50    $50 (2021-10-19)  8453     0        unread\n" +
		"1      a                 C      0.10    unknown           8453     3        " +
		"incomplete at block 7, 1m30s ago: \ufffd[2Jno\n"
	var out strings.Builder
	if err := printSources(&out, views, now); err != nil || out.String() != want {
		t.Errorf("got\n%s\nwant\n%s, %v", out.String(), want, err)
	}
	out.Reset()
	if err := printSources(&out, nil, now); err != nil || !strings.HasPrefix(out.String(), "no source counts") {
		t.Errorf("no sources: %q, %v", out.String(), err)
	}
}

// A source that is read from payments answers for an address by what the last epoch found, and says so where there was
// none.
func TestLastReading(t *testing.T) {
	t.Parallel()
	p := defaults(t)
	s, who, other := p.Source("x402-spend"), common.Address{1}, common.Address{2}
	r := lastReading(s, source.Past{}, who)
	if v := answerOf(p, &r, r.Credentials, 0); v.Says != "unknown" || !strings.Contains(v.Why, "no epoch") {
		t.Errorf("before the first epoch: %+v", v)
	}
	past := source.Past{States: []source.State{{Source: s.ID, Status: source.StatusOK}},
		Credentials: []source.Credential{{Source: s.ID, Version: s.Version, Rater: other, Weight: s.Weight}}}
	r = lastReading(s, past, who)
	if v := answerOf(p, &r, r.Credentials, 0); v.Says != "no" || v.Why != "" || v.Weight != "0.00" ||
		v.Credential != nil {
		t.Errorf("an address without a credential: %+v", v)
	}
	r = lastReading(s, past, other)
	if len(r.Credentials) != 1 || r.Credentials[0].Rater != other || len(r.Unknown) != 0 {
		t.Errorf("an address with a credential: %+v", r)
	}
}

// A credential is a yes also where it gives no weight, with the reason; what is off or unknown wins over it.
func TestAnswerOf(t *testing.T) {
	t.Parallel()
	p := defaults(t)
	s, who := p.Source("coinbase-account"), common.Address{1}
	const day = 24 * 60 * 60
	held := source.Credential{Source: s.ID, Version: s.Version, Rater: who, Weight: s.Weight, Issued: 1000}
	for _, c := range []struct {
		name    string
		reading source.Reading
		held    []source.Credential
		now     uint64
		says    string
		weight  string
		why     bool
	}{
		{"counts", source.Reading{}, []source.Credential{held}, 1000 + 8*day, "yes", "0.50", false},
		{"too young", source.Reading{}, []source.Credential{held}, 1000 + 6*day, "yes", "0.00", true},
		{"too old", source.Reading{}, []source.Credential{held}, 1000 + 400*day, "yes", "0.00", true},
		{"none", source.Reading{}, nil, 1000, "no", "0.00", false},
		{"off", source.Reading{State: source.State{Status: source.StatusOff, Reason: "changed"}},
			[]source.Credential{held}, 1000 + 6*day, "off", "0.00", true},
		{"unknown", source.Reading{State: source.State{Reason: "no route"}, Unknown: []common.Address{who}}, nil, 1000,
			"unknown", "0.00", true},
	} {
		c.reading.Source = s.ID
		v := answerOf(p, &c.reading, c.held, c.now)
		if v.Source != s.ID || v.Says != c.says || v.Weight != c.weight || (v.Why != "") != c.why {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// The answers about an address are a table, with the day of issue where there is a credential.
func TestPrintCheck(t *testing.T) {
	t.Parallel()
	v := checkView{ChainID: 8453, Block: 7, Weight: "0.50", Sources: []answerView{
		{Source: "a", Says: "yes", Weight: "0.50", Credential: &source.Credential{Issued: 1_700_000_000}},
		{Source: "b", Says: "unknown", Weight: "0.00", Why: "no\x07 route"}}}
	const want = "0x0000000000000000000000000000000000000000 on chain 8453 at block 7: weight 0.50 from sources\n" +
		"SOURCE  SAYS     WEIGHT  ISSUED      WHY\n" +
		"a       yes      0.50    2023-11-14  \n" +
		"b       unknown  0.00                no\ufffd route\n"
	var out strings.Builder
	if err := printCheck(&out, v); err != nil || out.String() != want {
		t.Errorf("got\n%s\nwant\n%s, %v", out.String(), want, err)
	}
}
