package contracts

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"pgregory.net/rapid"

	"repute"
	"repute/contracts/bindings"
	"repute/contracts/bindings/fixtures"
)

func mustFunction(t testing.TB, text string) *Function {
	t.Helper()
	f, err := ParseFunction(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestParseFunction(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"transfer(address to, uint256 amount)":            "transfer(address,uint256)",
		" transfer ( address payable to , uint amount ) ": "transfer(address,uint256)",
		"pause()": "pause()",
		"fill((address token, uint8[2] legs)[] orders, bytes calldata data)": "fill((address,uint8[2])[],bytes)",
		"fill(tuple(int24 tick, string memory note) order)":                  "fill((int24,string))",
	} {
		if f := mustFunction(t, text); f.Signature != want {
			t.Errorf("%q is %s", text, f.Signature)
		}
	}
	for _, text := range []string{"", "()", "a", "a(", "a(uint256", "a(uint7)", "a(uint264)", "a(bytes33)", "a(uint08)",
		"a(address,)", "a(address) b", "a(uint256[0])", "a(uint256[01])",
		"a(()[])", "a(fixed)", "a(uint256[5000][5000])", "a(" + strings.Repeat("(", 20) + strings.Repeat(")", 20) + ")",
		"a(" + strings.Repeat("uint256,", 1000) + "uint256)"} {
		if _, err := ParseFunction(text); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// Arguments are named, typed and placed.
func TestDecodeNamesArguments(t *testing.T) {
	t.Parallel()
	f := mustFunction(t, "fill((address token, int24 tick)[] orders, bool, bytes data, bytes4 id)")
	type order struct {
		Token common.Address
		Tick  *big.Int
	}
	data := packed(t, f, "fill", []order{{common.Address{19: 1}, big.NewInt(-5)}}, true, []byte{1, 2}, [4]byte{9})
	got, err := f.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	one := common.Address{19: 1}.Hex()
	var lines []string
	for _, a := range got.List() {
		lines = append(lines, fmt.Sprintf("%s %s %s=%s", a.Path, a.Type, a.Name, a.Value))
	}
	want := []string{"0 (address,int24)[] orders=1", "0.0.0 address orders[0].token=" + one,
		"0.0.1 int24 orders[0].tick=-5", "1 bool =true", "2 bytes data=0x0102", "3 bytes4 id=0x09000000"}
	if !slices.Equal(lines, want) {
		t.Errorf("listed %q", lines)
	}
	values := map[string]any{"orders": []any{map[string]any{"token": one, "tick": "-5"}}, "1": true, "data": "0x0102",
		"id": "0x09000000"}
	if !reflect.DeepEqual(got.Values(), values) {
		t.Errorf("values %v", got.Values())
	}
}

// packed is a call as go-ethereum's encoder writes it.
func packed(t testing.TB, f *Function, name string, args ...any) []byte {
	t.Helper()
	var inputs abi.Arguments
	for i := range f.inputs {
		typ, err := abi.NewType(marshaled(&f.inputs[i], i))
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, abi.Argument{Name: fmt.Sprint("a", i), Type: typ})
	}
	m := abi.NewMethod(name, name, abi.Function, "", false, false, inputs, nil)
	body, err := m.Inputs.Pack(args...)
	if err != nil {
		t.Fatal(err)
	}
	return append(slices.Clone(m.ID), body...)
}

// marshaled is a type as go-ethereum reads it.
func marshaled(f *field, i int) (name, internal string, parts []abi.ArgumentMarshaling) {
	t, brackets := f.abiType, ""
	for t.elem != nil {
		brackets = strings.TrimPrefix(t.name, t.elem.name) + brackets
		t = *t.elem
	}
	if t.kind != kindTuple {
		return f.abiType.name, "", nil
	}
	for j := range t.members {
		n, internal, inner := marshaled(&t.members[j], j)
		called := t.members[j].name
		if called == "" {
			called = fmt.Sprint("m", j)
		}
		parts = append(parts, abi.ArgumentMarshaling{Name: called, Type: n, InternalType: internal, Components: inner})
	}
	return "tuple" + brackets, "", parts
}

// What an encoder writes is read back with the same values; any other bytes are refused or
// have other values.
func TestDecodeIsExact(t *testing.T) {
	t.Parallel()
	f := mustFunction(t, "f(uint8 a, int16[] b, string c, (bytes d, bool e)[2] g, address h)")
	type pair struct {
		D []byte
		E bool
	}
	rapid.Check(t, func(r *rapid.T) {
		b := rapid.SliceOfN(rapid.Int16(), 0, 4).Draw(r, "b")
		text := rapid.StringN(0, 40, 80).Draw(r, "c")
		ds := [2][]byte{rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(r, "d0"),
			rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(r, "d1")}
		a := rapid.Byte().Draw(r, "a")
		data := packed(t, f, "f", a, b, text, [2]pair{{ds[0], true}, {ds[1], false}}, common.Address{1})
		got, err := f.Decode(data)
		if err != nil {
			r.Fatal(err)
		}
		v := got.Values()
		g := v["g"].([]any)
		if v["a"] != fmt.Sprint(a) || v["c"] != text || len(v["b"].([]any)) != len(b) ||
			g[1].(map[string]any)["d"] != hexutil.Encode(ds[1]) || g[0].(map[string]any)["e"] != true {
			r.Fatalf("decoded %v", v)
		}
		changed := bytes.Clone(data)
		changed[rapid.IntRange(0, len(data)-1).Draw(r, "at")] ^= byte(rapid.IntRange(1, 255).Draw(r, "with"))
		if other, err := f.Decode(changed); err == nil && reflect.DeepEqual(other.List(), got.List()) {
			r.Fatalf("%x and %x have the same arguments", data, changed)
		}
		for _, cut := range [][]byte{data[:len(data)-1], append(slices.Clone(data), 0),
			data[:rapid.IntRange(0, len(data)-1).Draw(r, "cut")]} {
			if _, err := f.Decode(cut); !errors.Is(err, ErrEncoding) {
				r.Fatalf("%d of %d bytes: %v", len(cut), len(data), err)
			}
		}
	})
}

// A function's text has all names, so that what is kept of it decodes as what was given.
func TestFunctionTextKeepsNames(t *testing.T) {
	t.Parallel()
	const text = "fill((address token, (uint8[2] legs, bytes)[3] parts)[] orders, bool, (int24 tick, string) last)"
	f := mustFunction(t, text)
	again := mustFunction(t, f.Text)
	if f.Text != text || !reflect.DeepEqual(f, again) {
		t.Errorf("kept as %s, read as %+v", f.Text, again)
	}
}

// A tail that is used twice, as a bomb does to grow while it is read, is refused.
func TestDecodeRefusesOverlaps(t *testing.T) {
	t.Parallel()
	f := mustFunction(t, "f(bytes[] a)")
	data := packed(t, f, "f", [][]byte{{1}, {1}})
	copy(data[4+32*3:4+32*4], data[4+32*2:4+32*3]) // the second element's place becomes the first's
	if _, err := f.Decode(data); !errors.Is(err, ErrEncoding) {
		t.Errorf("decoded: %v", err)
	}
}

// Known functions are decoded with what they carry; the entry of an allow-list tells the others,
// and renames none of the known ones.
func TestCallDecoder(t *testing.T) {
	t.Parallel()
	d, err := NewCallDecoder()
	if err != nil {
		t.Fatal(err)
	}
	token, to := common.Address{19: 7}, common.Address{19: 8}
	pay := fixtures.NewTestToken().PackTransfer(to, big.NewInt(250))
	data := bindings.NewOpenFiTreasury().PackExecuteCall([32]byte{1}, token, big.NewInt(3), pay, [32]byte{2},
		[32]byte{3}, "rent")
	calls := d.Decode(common.Address{19: 6}, data, nil)
	if len(calls) != 2 || calls[0].Source != SourceKnown || calls[1].Within != "3" || calls[1].Target != token.Hex() ||
		calls[1].Decoded.Values()["amount"] != "250" {
		t.Fatalf("calls %+v", calls)
	}
	// of the same selector
	for _, text := range []string{"transfer(address amount, uint256 to)", "many_msg_babbage(bytes1)"} {
		if c := d.Decode(token, pay, mustFunction(t, text))[0]; c.Source != SourceKnown ||
			c.Decoded.Values()["to"] != to.Hex() {
			t.Errorf("named %s: %+v", text, c)
		}
	}
	set := mustFunction(t, "set(address who)")
	if c := d.Decode(token, append(set.Selector[:], common.LeftPadBytes(to[:], 32)...),
		set)[0]; c.Source != SourceListed || c.Decoded.Values()["who"] != to.Hex() {
		t.Errorf("with the entry of an allow-list %+v", c)
	}
	strange := []byte{1, 2, 3, 4, 5}
	if c := d.Decode(token, strange, nil)[0]; c.Undecoded == "" || c.Data != "0x0102030405" || c.Decoded != nil {
		t.Errorf("unknown %+v", c)
	}
	if c := d.Decode(token, append(slices.Clone(pay), 0), nil)[0]; !strings.Contains(c.Undecoded,
		"follow the arguments") || c.Decoded != nil {
		t.Errorf("with a byte more %+v", c)
	}
	if c := d.Decode(token, nil, nil)[0]; c.Undecoded != "" || c.Selector != "" {
		t.Errorf("without data %+v", c)
	}
}
