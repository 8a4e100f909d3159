package capability_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"repute"
	"repute/agent/capability"
	"repute/agent/signed"
)

// The expected bytes are written by hand from RFC 8785: sorted members, shortest numbers.
func TestHashesAreOverCanonicalJSON(t *testing.T) {
	t.Parallel()
	got, err := capability.TaskHash("42", "code-review", "1.0.0", json.RawMessage(` { "b" : 1.0, "a": "\u20ac<" } `))
	want := crypto.Keccak256Hash([]byte(
		`{"agentId":"42","capability":"code-review","input":{"a":"€<","b":1},"version":"1.0.0"}`))
	if err != nil || got != want {
		t.Errorf("task hash %s, %v; want %s", got, err, want)
	}
	got,
		err = signed.HashJSON(json.RawMessage(`[333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001]`))
	want = crypto.Keccak256Hash([]byte(`[333333333.3333333,1e+30,4.5,0.002,1e-27]`))
	if err != nil || got != want {
		t.Errorf("result hash %s, %v; want %s", got, err, want)
	}
	if _, err := capability.TaskHash("42", "code-review", "1.0.0",
		json.RawMessage(`[9007199254740993]`)); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("an integer that no double holds: %v", err)
	}
}

// value draws JSON values whose members have unique names.
func value(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 5).Draw(t, "kind")
		switch {
		case kind == 0:
			return rapid.String().Draw(t, "text")
		case kind == 1:
			return rapid.Float64Range(-1e300, 1e300).Draw(t, "number")
		case kind == 2:
			return rapid.Bool().Draw(t, "flag")
		case kind == 3 || depth == 0:
			return nil
		case kind == 4:
			return rapid.SliceOfN(value(depth-1), 0, 4).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.String(), value(depth-1), 0, 4).Draw(t, "object")
	})
}

// write gives a value as JSON with members in any order and any space between tokens.
func write(r *rand.Rand, v any) string {
	space := func() string { return strings.Repeat([]string{"", " ", "\n", "\t"}[r.IntN(4)], r.IntN(3)) }
	switch v := v.(type) {
	case map[string]any:
		members := make([]string, 0, len(v))
		for name, x := range v {
			key, _ := json.Marshal(name)
			members = append(members, space()+string(key)+space()+":"+write(r, x))
		}
		sort.Strings(members)
		r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		return space() + "{" + strings.Join(members, ",") + space() + "}" + space()
	case []any:
		items := make([]string, len(v))
		for i, x := range v {
			items[i] = write(r, x)
		}
		return space() + "[" + strings.Join(items, ",") + space() + "]" + space()
	case float64:
		form := "eg"[r.IntN(2)]
		if math.Abs(v) >= 1<<53 {
			form = 'e' // as digits alone it is an integer that is refused, or not, by its last digits
		}
		return space() + strconv.FormatFloat(v, form, 17, 64) + space()
	}
	raw, _ := json.Marshal(v)
	return space() + string(raw) + space()
}

// Layout and the order of members do not change a hash, another value does.
func TestHashIgnoresLayout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := value(3).Draw(t, "value")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a, b := write(r, v), write(r, v)
		first, err := capability.TaskHash("1", "c", "1.0.0", json.RawMessage(a))
		if errors.Is(err, repute.ErrInvalid) {
			t.Skip("integers that no double holds, NUL")
		}
		second, err2 := capability.TaskHash("1", "c", "1.0.0", json.RawMessage(b))
		if err != nil || err2 != nil || first != second {
			t.Fatalf("%s, %v\n%s, %v\nof %s\nand %s", first, err, second, err2, a, b)
		}
		other, err := capability.TaskHash("1", "c", "1.0.0", json.RawMessage(fmt.Sprintf("[%s]", a)))
		if err != nil || other == first {
			t.Fatalf("another input has the hash %s, %v", other, err)
		}
	})
}
