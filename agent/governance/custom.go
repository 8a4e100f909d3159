package governance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/ext"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/policy"
)

// customRule is a compiled CustomRule.
type customRule struct {
	CustomRule
	when policy.Expression
}

// names are the variables of custom rules.
const names = "client, request, own, mode and hour"

// clientView is what custom rules can name of a client.
type clientView struct {
	Address  string `cel:"address"` // checksummed, empty where not known
	Identity string `cel:"identity"`
	scoreView
}

// scoreView is what custom rules can name of a score.
type scoreView struct {
	Score float64 `cel:"score"`
	Low   float64 `cel:"low"`
	High  float64 `cel:"high"`
	Rated bool    `cel:"rated"`
}

// requestView is what custom rules can name of a request. The price is empty for a free one.
type requestView struct {
	Capability string `cel:"capability"`
	TrustTier  int64  `cel:"trustTier"`
	Free       bool   `cel:"free"`
	Paid       bool   `cel:"paid"`
	Amount     string `cel:"amount"`
	Currency   string `cel:"currency"`
	Minor      string `cel:"minor"` // for the functions lt, lte, gt, gte, add, sub, mul, div
}

var rulePattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// compile checks the custom rules. The error names each that is wrong.
func (p *Policy) compile() error {
	rules := p.file.Rules.Custom
	if len(rules) == 0 || len(rules) > maxCustom {
		return nil // File.check tells of too many
	}
	env, err := environment()
	if err != nil {
		return fmt.Errorf("rules.custom: %w", err)
	}
	var wrong []error
	seen := map[string]bool{}
	for i, r := range rules {
		c, err := compileRule(env, fmt.Sprintf("rules.custom[%d]", i), r, seen[r.ID])
		seen[r.ID] = true
		wrong = append(wrong, err)
		p.custom = append(p.custom, c)
	}
	return errors.Join(wrong...)
}

// compileRule checks one rule.
func compileRule(env *cel.Env, at string, r CustomRule, twice bool) (c customRule, err error) {
	switch {
	case !rulePattern.MatchString(r.ID) || twice:
		return c, repute.Invalid(at+".id", fmt.Sprintf("%.80q is empty, malformed or used twice", r.ID),
			"a short name of its own")
	case r.Effect.strength() < 0:
		return c, repute.Invalid(at+".effect", fmt.Sprintf("%.40q is no effect", r.Effect),
			"allow, degrade, require_validation, require_approval, require_payment or deny")
	case r.Reason == "" || len(r.Reason) > 500:
		return c, repute.Invalid(at+".reason", "missing or too long", "a sentence for people")
	}
	when, err := policy.NewExpression(env, at+".when", r.When, names)
	return customRule{r, when}, err
}

// environment declares what custom rules can name.
func environment() (*cel.Env, error) {
	return policy.Environment(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[clientView](), reflect.TypeFor[scoreView](),
			reflect.TypeFor[requestView]()),
		cel.Variable("client", cel.ObjectType("governance.clientView")),
		cel.Variable("request", cel.ObjectType("governance.requestView")),
		cel.Variable("own", cel.ObjectType("governance.scoreView")),
		cel.Variable("mode", cel.StringType), cel.Variable("hour", cel.IntType))
}

// customReasons evaluates the custom rules. A rule that fails denies.
func (p *Policy) customReasons(ctx context.Context, req *Request, state State, now time.Time) (out []Reason) {
	if len(p.custom) == 0 {
		return nil
	}
	values := map[string]any{"client": viewClient(req.Client), "request": viewRequest(req), "own": viewScore(state.Own),
		"mode": string(state.Mode), "hour": int64(now.UTC().Hour())}
	for _, rule := range p.custom {
		applies, err := rule.when.Holds(ctx, values)
		switch {
		case err != nil:
			out = append(out, Reason{Code: CodeRuleFailed, Rule: rule.ID, Effect: Deny, Text: err.Error()})
		case applies:
			out = append(out, Reason{Code: CodeRule, Rule: rule.ID, Effect: rule.Effect, Text: rule.Reason})
		}
	}
	return out
}

func viewScore(s Score) scoreView {
	s = s.orUnrated()
	return scoreView{s.Value, s.Low, s.High, s.Rated}
}

func viewClient(c Client) clientView {
	v := clientView{Identity: c.Identity, scoreView: viewScore(c.Score)}
	if c.Address != (common.Address{}) {
		v.Address = c.Address.Hex()
	}
	return v
}

func viewRequest(r *Request) requestView {
	v := requestView{Capability: r.Capability, TrustTier: int64(r.TrustTier), Free: r.Price == nil, Paid: r.Paid}
	if r.Price != nil {
		v.Amount, v.Currency, v.Minor = r.Price.Amount, r.Price.Currency, r.Price.Minor
	}
	return v
}
