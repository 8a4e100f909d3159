package governance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute/agent/governance"
)

var noon = time.Date(2026, 1, 20, 12, 0, 0, 0, time.UTC)

// known is a rated score without bounds of its own.
func known(value float64, at time.Time) governance.Score {
	return governance.Score{Value: value, Low: value, High: value, Rated: true, At: at}
}

func bounds(low, high float64) governance.Score {
	return governance.Score{Value: (low + high) / 2, Low: low, High: high, Rated: true, At: noon}
}

// codes lists the codes of a decision.
func codes(d governance.Decision) string {
	out := make([]string, len(d.Reasons))
	for i, r := range d.Reasons {
		out[i] = string(r.Code)
	}
	return strings.Join(out, " ")
}

func TestDecide(t *testing.T) {
	t.Parallel()
	eth := func(amount string) *governance.Price { return &governance.Price{Amount: amount, Currency: "ETH"} }
	usdc := &governance.Price{Amount: "5", Currency: "USDC"}
	const thresholds = `"validation":{"requireValidationAbove":["1 ETH","3000.5 USDC"]}`
	tests := []struct {
		name, rules string
		req         governance.Request
		want        governance.Effect
		codes       string
	}{
		{"no rules", ``, governance.Request{}, governance.Allow, ""},
		{"unrated client, minimum 0", `"reputation":{"minClientReputation":0}`, governance.Request{},
			governance.Allow, ""},
		{"unrated client, minimum 1", `"reputation":{"minClientReputation":1}`, governance.Request{}, governance.Deny,
			"reputation_too_low"},
		{"unrated client with bounds", `"reputation":{"minClientReputation":0,"rejectBelowScore":-10}`,
			governance.Request{Client: governance.Client{Score: governance.Score{Value: 50, Low: -100, High: -100}}},
			governance.Allow, ""},
		{"the lower bound admits", `"reputation":{"minClientReputation":10}`,
			governance.Request{Client: governance.Client{Score: bounds(10, 90)}}, governance.Allow, ""},
		{"the lower bound does not admit", `"reputation":{"minClientReputation":10}`,
			governance.Request{Client: governance.Client{Score: bounds(9.9, 90)}}, governance.Deny,
			"reputation_too_low"},
		{"the upper bound refuses", `"reputation":{"rejectBelowScore":-10}`,
			governance.Request{Client: governance.Client{Score: bounds(-90, -10.1)}}, governance.Deny,
			"reputation_too_low"},
		{"the upper bound does not refuse", `"reputation":{"rejectBelowScore":-10}`,
			governance.Request{Client: governance.Client{Score: bounds(-90, -10)}}, governance.Allow, ""},
		{"the stricter of both counts", `"reputation":{"minClientReputation":-50,"rejectBelowScore":-10}`,
			governance.Request{Client: governance.Client{Score: known(-20, noon)}}, governance.Deny,
			"reputation_too_low"},
		{"both are told", `"reputation":{"minClientReputation":0,"rejectBelowScore":-10}`,
			governance.Request{Client: governance.Client{Score: known(-20, noon)}}, governance.Deny,
			"reputation_too_low reputation_too_low"},
		{"payment for all, unpaid", `"payment":{"requirePaymentForAll":true}`, governance.Request{},
			governance.RequirePayment, "payment_required"},
		{"payment for all, paid", `"payment":{"requirePaymentForAll":true}`,
			governance.Request{Paid: true, Price: usdc},
			governance.Allow, ""},
		{"a refusal is stronger than payment",
			`"payment":{"requirePaymentForAll":true},"reputation":{"minClientReputation":1}`,
			governance.Request{}, governance.Deny, "reputation_too_low payment_required"},
		{"at the threshold", thresholds, governance.Request{Price: eth("1.000")}, governance.Allow, ""},
		{"above the threshold", thresholds, governance.Request{Price: eth("1.000000000000000001")},
			governance.RequireValidation, "validation_required"},
		{"below in its own currency", thresholds, governance.Request{Price: usdc}, governance.Allow, ""},
		{"another currency", `"validation":{"requireValidationAbove":"1 ETH"}`, governance.Request{Price: usdc},
			governance.RequireValidation, "validation_required"},
		{"no amount", thresholds, governance.Request{Price: eth("0x1")}, governance.RequireValidation,
			"validation_required"},
		{"a free request", thresholds, governance.Request{}, governance.Allow, ""},
		{"the capability asks", ``, governance.Request{RequiresValidation: true}, governance.RequireValidation,
			"validation_required"},
	}
	for _, tt := range tests {
		p := withRules(t, tt.rules)
		d := p.Decide(t.Context(), &tt.req, governance.State{Mode: governance.Normal}, noon)
		if d.Effect != tt.want || codes(d) != tt.codes {
			t.Errorf("%s: got %s (%s); want %s (%s)", tt.name, d.Effect, codes(d), tt.want, tt.codes)
		}
	}
}

func TestReasonsTellWhatIsMissing(t *testing.T) {
	t.Parallel()
	d := parse(t, sample).Decide(t.Context(),
		&governance.Request{Price: &governance.Price{Amount: "1.5", Currency: "ETH"},
			Client: governance.Client{Score: known(-10.5, noon)}}, governance.State{}, noon)
	got := [][3]string{}
	for _, r := range d.Reasons {
		got = append(got, [3]string{r.Rule, r.Have, r.Need})
	}
	want := [][3]string{{"rules.reputation.minClientReputation", "-10.5", "0"},
		{"rules.reputation.rejectBelowScore", "-10.5", "-10"},
		{"rules.validation.requireValidationAbove", "1.5 ETH", "1 ETH"}}
	if !slices.Equal(got, want) || !d.Has(governance.RequireValidation) || d.Has(governance.RequirePayment) {
		t.Errorf("got %v", got)
	}
}

func TestValidatorAndRefund(t *testing.T) {
	t.Parallel()
	p := parse(t, sample)
	if d := p.Validator(bounds(79, 100)); d.Effect != governance.Deny || codes(d) != "validator_reputation_too_low" {
		t.Errorf("a validator that is not shown to reach 80: %+v", d)
	}
	if d := p.Validator(bounds(80, 100)); d.Effect != governance.Allow {
		t.Errorf("a validator of 80: %+v", d)
	}
	if p.RefundsFailure() || !withRules(t, `"payment":{"refundPolicy":"onFailure"}`).RefundsFailure() {
		t.Error("the refund policy is not what the file says")
	}
}

func TestCustomRules(t *testing.T) {
	t.Parallel()
	rule := func(when string, effect governance.Effect) string {
		return `"custom":[{"id":"mine","when":` + "`" + when + "`" + `,"effect":"` + string(effect) +
			`","reason":"Because."}]`
	}
	request := governance.Request{Capability: "code-review", TrustTier: 3, Paid: true,
		Price:  &governance.Price{Amount: "2", Currency: "USDC", Minor: "2000000"},
		Client: governance.Client{Address: common.HexToAddress("0xaa"), Identity: "id", Score: bounds(1, 3)}}
	state := governance.State{Mode: governance.Degraded, Own: known(40, noon)}
	for when, applies := range map[string]bool{
		`client.score == 2.0 && client.low == 1.0 && client.high == 3.0 && client.rated`:  true,
		`client.address == '0x00000000000000000000000000000000000000AA'`:                  true,
		`request.capability == 'code-review' && request.trustTier >= 3`:                   true,
		`gt(request.minor, '1999999') && request.currency == 'USDC'`:                      true,
		`request.free || !request.paid`:                                                   false,
		`own.score < 50.0 && mode == 'degraded' && hour == 12 && client.identity == 'id'`: true,
		`request.amount == '3'`: false,
	} {
		p := withRules(t, strings.ReplaceAll(rule(when, governance.RequireApproval), "`", `"`))
		d := p.Decide(t.Context(), &request, state, noon)
		if (d.Effect == governance.RequireApproval) != applies {
			t.Errorf("%s: %+v", when, d)
		}
	}
	p := withRules(t, strings.ReplaceAll(rule(`gt(request.amount, '1')`, governance.Allow), "`", `"`))
	free := governance.Request{}
	if d := p.Decide(t.Context(), &free, state, noon); d.Effect != governance.Deny || codes(d) != "custom_rule_failed" {
		t.Errorf("a rule that cannot be evaluated: %+v", d)
	}
}

// counter counts in memory.
type counter struct {
	used map[governance.FreeKey]int
	err  error
}

func (c *counter) TakeFree(_ context.Context, key governance.FreeKey, limit int) (bool, error) {
	if c.err != nil || c.used[key] >= limit {
		return false, c.err
	}
	c.used[key]++
	return true, nil
}

func TestFreeTier(t *testing.T) {
	t.Parallel()
	p := withRules(t, `"payment":{"freeTierRateLimit":2}`)
	c := &counter{used: map[governance.FreeKey]int{}}
	take := func(client, capability string, now time.Time, price *governance.Price) governance.Decision {
		t.Helper()
		d, err := p.TakeFree(t.Context(), c, &governance.Request{Capability: capability, Price: price,
			Client: governance.Client{Identity: client}}, now)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	late := noon.Add(59 * time.Minute)
	for i, want := range []governance.Effect{governance.Allow, governance.Allow, governance.Deny} {
		if d := take("a", "x", late, nil); d.Effect != want {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	if d := take("a", "x", late, nil); codes(d) != "free_tier_exhausted" ||
		!d.Reasons[0].Until.Equal(noon.Add(time.Hour)) {
		t.Errorf("got %+v", d)
	}
	for name, d := range map[string]governance.Decision{
		"another client": take("b", "x", late, nil), "another capability": take("a", "y", late, nil),
		"the next hour": take("a", "x", noon.Add(time.Hour), nil),
		"a paid one":    take("a", "x", late, &governance.Price{Amount: "1", Currency: "USDC"}),
	} {
		if d.Effect != governance.Allow {
			t.Errorf("%s: %+v", name, d)
		}
	}
	c.err = errors.New("down")
	if _, err := p.TakeFree(t.Context(), c, &governance.Request{}, noon); !errors.Is(err, c.err) {
		t.Errorf("a counter that fails: %v", err)
	}
	none := withRules(t, `"payment":{"freeTierRateLimit":0}`)
	c.err = nil
	if d, err := none.TakeFree(t.Context(), c, &governance.Request{}, noon); err != nil ||
		d.Effect != governance.Deny ||
		!d.Reasons[0].Until.IsZero() {
		t.Errorf("no free tier: %+v, %v", d, err)
	}
}

func TestMode(t *testing.T) {
	t.Parallel()
	const restart = `"reputation":{"degradeServiceBelowScore":50},"shutdown":{"autoShutdownOnLowReputation":true,` +
		`"shutdownThreshold":-50,"autoRestartWhenFixed":true}`
	sticky := strings.Replace(restart, "true}", "false}", 1)
	off := strings.Replace(restart, `"autoShutdownOnLowReputation":true`, `"autoShutdownOnLowReputation":false`, 1)
	old := func(s governance.Score) governance.Score {
		s.At = noon.Add(-governance.MaxScoreAge - time.Second)
		return s
	}
	tests := []struct {
		name, rules string
		own         governance.Own
		want        governance.Mode
		code        governance.Code
	}{
		{"no rules", ``, governance.Own{Score: known(-100, noon)}, governance.Normal, ""},
		{"good", restart, governance.Own{Score: bounds(50, 60)}, governance.Normal, ""},
		{"the lower bound degrades", restart, governance.Own{Score: bounds(49.9, 100)}, governance.Degraded,
			"own_reputation_low"},
		{"unrated is 0", restart, governance.Own{Score: governance.Score{At: noon}}, governance.Degraded,
			"own_reputation_low"},
		{"unrated is 0 whatever its bounds", restart,
			governance.Own{Score: governance.Score{Value: 50, Low: 50, High: 50,
				At: noon}},
			governance.Degraded, "own_reputation_low"},
		{"the upper bound stops", restart, governance.Own{Score: bounds(-100, -50.1)}, governance.Stopped,
			"shutdown_low_reputation"},
		{"the upper bound does not stop", restart, governance.Own{Score: bounds(-100, -50)}, governance.Degraded,
			"own_reputation_low"},
		{"shutdown is off", off, governance.Own{Score: bounds(-100, -60)}, governance.Degraded, "own_reputation_low"},
		{"stays stopped", sticky, governance.Own{Score: known(100, noon), Before: governance.Stopped},
			governance.Stopped, "shutdown_low_reputation"},
		{"starts again", restart, governance.Own{Score: known(100, noon), Before: governance.Stopped},
			governance.Normal, ""},
		{"does not start by an old score", restart, governance.Own{Score: old(known(100, noon)),
			Before: governance.Stopped},
			governance.Stopped, "shutdown_low_reputation"},
		{"does not stop by an old score", restart, governance.Own{Score: old(known(-100, noon)),
			Before: governance.Normal},
			governance.Normal, "own_score_stale"},
		{"stays degraded by an old score", restart, governance.Own{Score: old(known(100, noon)),
			Before: governance.Degraded},
			governance.Degraded, "own_score_stale"},
		{"no score yet", restart, governance.Own{}, governance.Degraded, "own_score_stale"},
	}
	for _, tt := range tests {
		s := withRules(t, tt.rules).Mode(tt.own, noon)
		code := governance.Code("")
		if len(s.Reasons) > 0 {
			code = s.Reasons[0].Code
		}
		if s.Mode != tt.want || code != tt.code || s.Standing != tt.want {
			t.Errorf("%s: got %s, %s; want %s, %s", tt.name, s.Mode, code, tt.want, tt.code)
		}
	}
}

func TestModeDecides(t *testing.T) {
	t.Parallel()
	p := parse(t, sample)
	for value, want := range map[float64]governance.Effect{60: governance.Allow, 0: governance.Degrade,
		-60: governance.Deny} {
		state := p.Mode(governance.Own{Score: known(value, noon)}, noon)
		if d := p.Decide(t.Context(), &governance.Request{}, state, noon); d.Effect != want {
			t.Errorf("own score %g: %+v", value, d)
		}
	}
}

func TestMaintenance(t *testing.T) {
	t.Parallel()
	p := withRules(t, `"upgrade":{"autoUpgrade":true,"maintenanceWindow":"0 2 * * *","maintenanceMinutes":90}`)
	day := noon.Truncate(24 * time.Hour)
	for at, want := range map[string]governance.Mode{"1h59m59s": governance.Normal, "2h": governance.Maintenance,
		"3h29m59s": governance.Maintenance, "3h30m": governance.Normal} {
		offset, _ := time.ParseDuration(at)
		now := day.Add(offset).In(time.FixedZone("elsewhere", 7*3600))
		s := p.Mode(governance.Own{}, now)
		if s.Mode != want {
			t.Errorf("%s: %s", at, s.Mode)
		}
		if want == governance.Maintenance && !s.Reasons[0].Until.Equal(day.Add(3*time.Hour+30*time.Minute)) {
			t.Errorf("%s: until %s", at, s.Reasons[0].Until)
		}
	}
	uninterrupted := withRules(t, `"upgrade":{"autoUpgrade":true,"maintenanceWindow":"0 2 * * *"}`)
	at := day.Add(2*time.Hour + time.Minute)
	if s := uninterrupted.Mode(governance.Own{}, at); s.Mode != governance.Normal {
		t.Errorf("a window without a length: %s", s.Mode)
	}
	overlapping := withRules(t, `"upgrade":{"maintenanceWindow":"0,30 2 * * *","maintenanceMinutes":60}`)
	if s := overlapping.Mode(governance.Own{}, day.Add(2*time.Hour+45*time.Minute)); s.Mode != governance.Maintenance ||
		!s.Reasons[0].Until.Equal(day.Add(3*time.Hour+30*time.Minute)) {
		t.Errorf("overlapping windows: %+v", s)
	}
}

// A better score never makes the mode worse, whatever came before.
func TestModeIsMonotonic(t *testing.T) {
	t.Parallel()
	order := []governance.Mode{governance.Normal, governance.Degraded, governance.Maintenance, governance.Stopped}
	rapid.Check(t, func(t *rapid.T) {
		score := rapid.IntRange(-100, 100)
		rules := `"reputation":{"degradeServiceBelowScore":%d},"shutdown":{"autoShutdownOnLowReputation":%t,` +
			`"shutdownThreshold":%d,"autoRestartWhenFixed":%t},"upgrade":{"maintenanceWindow":"0 %d * * *","maintenanceMinutes":60}`
		p := draw(t, rules, score.Draw(t, "degrade"), rapid.Bool().Draw(t, "auto"), score.Draw(t, "stop"),
			rapid.Bool().Draw(t, "restart"), rapid.IntRange(0, 23).Draw(t, "hour"))
		low, width, up := score.Draw(t, "low"), rapid.IntRange(0, 50).Draw(t,
			"width"), rapid.IntRange(0, 100).Draw(t, "up")
		before := rapid.SampledFrom([]governance.Mode{"", governance.Normal, governance.Degraded,
			governance.Stopped}).Draw(t,
			"before")
		mode := func(low, high int) int {
			s := bounds(float64(low), float64(high))
			return slices.Index(order, p.Mode(governance.Own{Score: s, Before: before}, noon).Mode)
		}
		if worse, better := mode(low, low+width), mode(low+up, low+width+up); better > worse {
			t.Fatalf("%d more points make %s of %s", up, order[better], order[worse])
		}
	})
}
