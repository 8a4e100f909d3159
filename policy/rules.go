package policy

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"

	"repute"
)

const (
	// maxRules bounds the time to start as well: each rule is compiled by Parse.
	maxRules = 200
	// maxCost bounds one rule's evaluation, in CEL's units: a comparison is one.
	maxCost = 10_000
	// ruleTime bounds it on the clock, which only a broken rule reaches.
	ruleTime = time.Second
	// maxWhen bounds the text of one condition, in bytes.
	maxWhen = 4096
)

// program is a rule with its compiled condition.
type program struct {
	rule Rule
	when Expression
}

// Expression is a compiled condition. It is safe for concurrent use.
type Expression struct{ run cel.Program }

// NewExpression compiles a condition. repute.ErrInvalid: the field is no CEL expression of type bool
// over names, which the error lists.
//
// It checks in the order length, syntax and types, result type. The cost limit counts while the program runs, because
// nobody knows the length of lists before. The interrupt check lets the context end a comprehension.
func NewExpression(env *cel.Env, field, when, names string) (e Expression, err error) {
	if len(when) > maxWhen {
		return e, repute.Invalid(field, "too long", fmt.Sprintf("at most %d bytes", maxWhen))
	}
	ast, issues := env.Compile(when)
	if issues.Err() != nil {
		return e, repute.Invalid(field, issues.Err().Error(), "a CEL expression over "+names)
	}
	if !ast.OutputType().IsExactType(cel.BoolType) {
		return e, repute.Invalid(field, "is of type "+ast.OutputType().String(), "a condition: bool")
	}
	e.run, err = env.Program(ast, cel.CostLimit(maxCost), cel.InterruptCheckFrequency(100))
	if err != nil {
		return e, repute.Invalid(field, err.Error(), "a CEL expression")
	}
	return e, nil
}

// Holds reports whether the condition is true of values. An error means that it could not be
// evaluated within its cost and time; callers MUST then choose the safe side.
func (e Expression) Holds(ctx context.Context, values map[string]any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	out, _, err := e.run.ContextEval(ctx, values)
	if err != nil {
		return false, fmt.Errorf("the rule could not be evaluated: %s", strings.TrimSpace(err.Error()))
	}
	holds, ok := out.Value().(bool)
	return ok && holds, nil
}

// compile checks all rules. The error names each that is wrong. A rule with an error is part of the list that is
// returned, so that callers MUST look at the error first.
func compile(rules []Rule) ([]program, error) {
	if len(rules) > maxRules {
		return nil, repute.Invalid("rules", fmt.Sprintf("%d rules", len(rules)), fmt.Sprintf("at most %d", maxRules))
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	var out []program
	var wrong []error
	seen := map[string]bool{}
	for i, r := range rules {
		at := fmt.Sprintf("rules[%d]", i)
		p, err := compileRule(env, at, r)
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case seen[r.ID]:
			wrong = append(wrong, repute.Invalid(at+".id", fmt.Sprintf("%q is used twice", r.ID), "an id of its own"))
		}
		seen[r.ID] = true
		out = append(out, p)
	}
	return out, errors.Join(wrong...)
}

// compileRule checks a rule and compiles its expression. repute.ErrInvalid names the field of the
// policy. Effect has no default here: a rule without one is refused.
func compileRule(env *cel.Env, at string, r Rule) (program, error) {
	switch {
	case r.ID == "":
		return program{}, repute.Invalid(at+".id", "missing", "a short name")
	case r.Reason == "":
		return program{}, repute.Invalid(at+".reason", "missing", "a sentence for people")
	case !r.Effect.known():
		return program{}, repute.Invalid(at+".effect", fmt.Sprintf("%q is no effect", r.Effect), effects)
	}
	when, err := NewExpression(env, at+".when", r.When, "task, plan, agent, call, payment and phase")
	return program{rule: r, when: when}, err
}

// environment declares what the rules of this package can name. ext.NativeTypes gives the structs the names policy.Task
// and so on, after their Go package; ParseStructTags makes their members those of the cel tags.
func environment() (*cel.Env, error) {
	return Environment(
		ext.NativeTypes(ext.ParseStructTags(true), reflect.TypeFor[Task](), reflect.TypeFor[Plan](),
			reflect.TypeFor[Agent](), reflect.TypeFor[Call](), reflect.TypeFor[Payment]()),
		cel.Variable("phase", cel.StringType), cel.Variable("task", cel.ObjectType("policy.Task")),
		cel.Variable("plan", cel.ObjectType("policy.Plan")),
		cel.Variable("agent", cel.ObjectType("policy.Agent")), cel.Variable("call", cel.ObjectType("policy.Call")),
		cel.Variable("payment", cel.ObjectType("policy.Payment")))
}

// Environment declares the functions on amounts, and the variables that options add. It is exported for other packages
// whose conditions need the same functions. Results of arithmetic are texts again and can be nested.
func Environment(options ...cel.EnvOption) (*cel.Env, error) {
	for name, holds := range map[string]func(int) bool{
		"lt": func(c int) bool { return c < 0 }, "lte": func(c int) bool { return c <= 0 },
		"gt": func(c int) bool { return c > 0 }, "gte": func(c int) bool { return c >= 0 },
	} {
		options = append(options,
			onAmounts(name, cel.BoolType,
				func(a, b *big.Int) (ref.Val, error) { return types.Bool(holds(a.Cmp(b))), nil }))
	}
	for name, result := range map[string]func(a, b *big.Int) (*big.Int, error){
		"add": add, "mul": multiply, "sub": subtract, "div": divide,
	} {
		options = append(options, onAmounts(name, cel.StringType, func(a, b *big.Int) (ref.Val, error) {
			v, err := result(a, b)
			if err != nil {
				return nil, err
			}
			return types.String(v.String()), nil
		}))
	}
	return cel.NewEnv(options...)
}

// add has no bound of its own: the operands have at most maxDigits digits, and a longer sum is refused when it is an
// operand again.
func add(a, b *big.Int) (*big.Int, error) { //nolint:unparam // as subtract and divide
	return new(big.Int).Add(a, b), nil
}

// multiply may return more than maxDigits digits, which no function accepts as an operand.
func multiply(a, b *big.Int) (*big.Int, error) { //nolint:unparam // as subtract and divide
	return new(big.Int).Mul(a, b), nil
}

// subtract is an error where the result would be negative: amounts in wei never are.
func subtract(a, b *big.Int) (*big.Int, error) {
	if a.Cmp(b) < 0 {
		return nil, errors.New("sub: the result is negative")
	}
	return new(big.Int).Sub(a, b), nil
}

// divide rounds down, as integers of the EVM do.
func divide(a, b *big.Int) (*big.Int, error) {
	if b.Sign() == 0 {
		return nil, errors.New("div: by zero")
	}
	return new(big.Int).Div(a, b), nil
}

// onAmounts declares a function of two amounts. CEL sees an error value where an operand is no amount; a condition that
// depends on it cannot be evaluated, while one that is decided by its other side ("true || error") can.
func onAmounts(name string, result *cel.Type, f func(a, b *big.Int) (ref.Val, error)) cel.EnvOption {
	return cel.Function(name, cel.Overload(name+"_amounts", []*cel.Type{cel.StringType, cel.StringType}, result,
		cel.BinaryBinding(func(x, y ref.Val) ref.Val {
			a, err := amountOf(text(x))
			b, err2 := amountOf(text(y))
			if err := errors.Join(err, err2); err != nil {
				return types.WrapErr(err)
			}
			v, err := f(a, b)
			if err != nil {
				return types.WrapErr(err)
			}
			return v
		})))
}

// text is empty, hence no amount, for what is no string. CEL checks the types of variables, but not those of values in
// a dyn, such as call.args.
func text(v ref.Val) string {
	s, _ := v.Value().(string)
	return s
}

// evaluate tells whether the rule applies. A rule that fails applies, and denies.
func (p program) evaluate(ctx context.Context, in *Input) (Reason, bool) {
	applies, err := p.when.Holds(ctx, map[string]any{"phase": in.Phase, "task": in.Task, "plan": in.Plan,
		"agent": in.Agent, "call": in.Call, "payment": in.Payment})
	if err != nil {
		return Reason{ID: p.rule.ID, Effect: Deny, Text: err.Error()}, true
	}
	return Reason{ID: p.rule.ID, Effect: p.rule.Effect, Text: p.rule.Reason}, applies
}
