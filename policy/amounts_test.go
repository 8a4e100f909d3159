package policy_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"cel.dev/cel-go/cel"
	"pgregory.net/rapid"

	"repute"
	"repute/policy"
)

// condition compiles a condition over the texts a and b, and over x of any type.
func condition(t *testing.T, when string) policy.Expression {
	t.Helper()
	env, err := policy.Environment(cel.Variable("a", cel.StringType), cel.Variable("b", cel.StringType),
		cel.Variable("x", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	e, err := policy.NewExpression(env, "when", when, "a, b and x")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// amount draws a number of up to 80 digits, more than 256 bits hold, with zeros before some.
func amount(t *rapid.T, name string) string {
	return rapid.StringMatching(`0{0,2}[1-9][0-9]{0,77}|0`).Draw(t, name)
}

// TestAmountsAreExact: functions on amounts agree with the arithmetic of whole numbers of any size.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	compare := map[string]func(c int) bool{
		"lt": func(c int) bool { return c < 0 }, "lte": func(c int) bool { return c <= 0 },
		"gt": func(c int) bool { return c > 0 }, "gte": func(c int) bool { return c >= 0 }}
	compiled := map[string]policy.Expression{}
	for name := range compare {
		compiled[name] = condition(t, name+"(a, b)")
	}
	results := map[string]func(a, b *big.Int) *big.Int{
		"add": func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) },
		"mul": func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) },
		"sub": func(a, b *big.Int) *big.Int { return new(big.Int).Sub(a, b) },
		"div": func(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }}
	for name := range results {
		compiled[name] = condition(t, name+"(a, b) == x")
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := amount(t, "a"), amount(t, "b")
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		for name, holds := range compare {
			is, err := compiled[name].Holds(t.Context(), map[string]any{"a": a, "b": b, "x": ""})
			if err != nil || is != holds(x.Cmp(y)) {
				t.Fatalf("%s(%s, %s) is %t, %v", name, a, b, is, err)
			}
		}
		for name, result := range results {
			wrong := name == "sub" && x.Cmp(y) < 0 || name == "div" && y.Sign() == 0
			want := ""
			if !wrong {
				want = result(x, y).String()
			}
			is, err := compiled[name].Holds(t.Context(), map[string]any{"a": a, "b": b, "x": want})
			if (err != nil) != wrong || !wrong && !is {
				t.Fatalf("%s(%s, %s) is not %q: %t, %v", name, a, b, want, is, err)
			}
		}
	})
}

// TestAmountsThatAreNone: what is no amount makes the condition fail to be evaluated, and never false or true. The
// errors of all operands are told.
func TestAmountsThatAreNone(t *testing.T) {
	t.Parallel()
	e := condition(t, "lt(a, b)")
	for _, bad := range []string{"", " 1", "1 ", "+1", "-1", "1.0", "1e3", "0x1", "1_000", "½", "१",
		strings.Repeat("1", 161)} {
		for _, values := range []map[string]any{{"a": bad, "b": "1"}, {"a": "1", "b": bad}} {
			holds, err := e.Holds(t.Context(), values)
			if err == nil || holds || !strings.Contains(err.Error(), "amount") {
				t.Errorf("%v: %t, %v", values, holds, err)
			}
		}
	}
	_, err := e.Holds(t.Context(), map[string]any{"a": "one", "b": "two"})
	if err == nil || !strings.Contains(err.Error(), `"one"`) || !strings.Contains(err.Error(), `"two"`) {
		t.Errorf("two wrong amounts: %v", err)
	}
	if holds, err := e.Holds(t.Context(), map[string]any{"a": strings.Repeat("0", 160), "b": "1"}); err != nil || !holds {
		t.Errorf("zeros before the number: %t, %v", holds, err)
	}
}

// TestValuesOfAnyType: a value of a type that is only known at run time is an amount only if it is a text. A side that
// decides alone hides the error of the other, as CEL defines it.
func TestValuesOfAnyType(t *testing.T) {
	t.Parallel()
	e, either := condition(t, `gt(x, "1")`), condition(t, `a == "free" || gt(x, "1")`)
	for _, x := range []any{2, 2.5, true, nil, []string{"2"}, map[string]any{"x": "2"}} {
		if holds, err := e.Holds(t.Context(), map[string]any{"x": x}); err == nil || holds {
			t.Errorf("%v: %t, %v", x, holds, err)
		}
		if holds, err := either.Holds(t.Context(), map[string]any{"a": "free", "x": x}); err != nil || !holds {
			t.Errorf("%v beside what is true: %t, %v", x, holds, err)
		}
	}
	if holds, err := e.Holds(t.Context(), map[string]any{"x": "2"}); err != nil || !holds {
		t.Errorf("a text: %t, %v", holds, err)
	}
	if holds, err := e.Holds(t.Context(), map[string]any{}); err == nil || holds {
		t.Errorf("a variable without a value: %t, %v", holds, err)
	}
}

// TestConditionsThatAreNone: an error names the field, what is wrong, and what can be named.
func TestConditionsThatAreNone(t *testing.T) {
	t.Parallel()
	env, err := policy.Environment(cel.Variable("a", cel.StringType))
	if err != nil {
		t.Fatal(err)
	}
	for when, says := range map[string]string{
		"":                                      "",
		"a":                                     "is of type string",
		`lt(a, "1") ? 1 : 2`:                    "is of type int",
		"b == a":                                "undeclared reference to 'b'",
		`lt(a, 1)`:                              "no matching overload",
		"a == ":                                 "Syntax error",
		"true || " + strings.Repeat(" ", 4_100): "too long",
	} {
		_, err := policy.NewExpression(env, "rules[7].when", when, "a alone")
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != "rules[7].when" || !strings.Contains(input.Reason, says) ||
			input.Hint == "" {
			t.Errorf("%.30q: %v", when, err)
		}
	}
	if _, err := policy.NewExpression(env, "when", "b", "a alone"); err == nil ||
		!strings.Contains(err.Error(), "a alone") {
		t.Errorf("the hint does not say what can be named: %v", err)
	}
}

// TestCostIsBounded: a condition that takes too long is no condition that is false.
func TestCostIsBounded(t *testing.T) {
	t.Parallel()
	e := condition(t, `x.exists(i, x.exists(j, x.exists(k, i + j + k == a)))`)
	list := make([]string, 100)
	if holds, err := e.Holds(t.Context(), map[string]any{"a": "no", "x": list}); err == nil || holds {
		t.Errorf("a million steps: %t, %v", holds, err)
	}
	if holds, err := e.Holds(t.Context(), map[string]any{"a": "no", "x": list[:3]}); err != nil || holds {
		t.Errorf("27 steps: %t, %v", holds, err)
	}
}
