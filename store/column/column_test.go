package column_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
	"github.com/jackc/pgx/v5/pgtype"
	"pgregory.net/rapid"

	"repute"
	"repute/store/column"
)

// numeric draws a numeric as Postgres may send it: trailing zeros are in the exponent or not.
func numeric(t *rapid.T, n *big.Int) pgtype.Numeric {
	out := pgtype.Numeric{Int: new(big.Int).Set(n), Valid: true}
	ten := big.NewInt(10)
	for n.Sign() != 0 && rapid.Bool().Draw(t, "shift") {
		rest := new(big.Int)
		shorter, _ := new(big.Int).QuoRem(out.Int, ten, rest)
		if rest.Sign() != 0 {
			break
		}
		out.Int, out.Exp = shorter, out.Exp+1
	}
	if out.Exp == 0 && rapid.Bool().Draw(t, "point") { // 120 as 1200 * 10^-1
		out.Int, out.Exp = new(big.Int).Mul(out.Int, ten), -1
	}
	return out
}

func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "bytes"))
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(rapid.IntRange(0, 9).Draw(t, "zeros"))), nil))
		if rapid.Bool().Draw(t, "negative") {
			n.Neg(n)
		}
		var b column.BigNum
		if err := b.ScanNumeric(numeric(t, n)); err != nil || b.Cmp(n) != 0 {
			t.Fatalf("%s is read as %s, %v", n, b.Int, err)
		}
		var id column.TokenNum
		err := id.ScanNumeric(numeric(t, n))
		if fits := n.Sign() >= 0 && n.BitLen() <= 256; fits != (err == nil) {
			t.Fatalf("token id %s: %v", n, err)
		}
		if err != nil {
			return
		}
		if (*uint256.Int)(&id).ToBig().Cmp(n) != 0 {
			t.Fatalf("%s is read as token id %s", n, (*uint256.Int)(&id).Dec())
		}
		if back, err := id.NumericValue(); err != nil || back.Int.Cmp(n) != 0 || back.Exp != 0 {
			t.Fatalf("%s is written as %v, %v", n, back, err)
		}
	})
}

func TestNoIntegers(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]pgtype.Numeric{
		"null": {}, "NaN": {NaN: true, Valid: true}, "infinity": {InfinityModifier: pgtype.Infinity, Valid: true},
		"fraction": {Int: big.NewInt(15), Exp: -1, Valid: true},
	} {
		if err := new(column.BigNum).ScanNumeric(n); err == nil {
			t.Errorf("%s is read as an integer", name)
		}
		if err := new(column.TokenNum).ScanNumeric(n); err == nil {
			t.Errorf("%s is read as a token id", name)
		}
	}
}

// A row is read into the variables of the row before it.
func TestNoBytesAreZero(t *testing.T) {
	t.Parallel()
	address, hash := common.HexToAddress("0x01"), common.HexToHash("0x02")
	for _, b := range [][]byte{nil, {}} {
		a, h := column.Address(address), column.Hash(hash)
		if a.ScanBytes(b) != nil || h.ScanBytes(b) != nil || a != (column.Address{}) || h != (column.Hash{}) {
			t.Errorf("%v is read as %v and %v", b, a, h)
		}
	}
	var a column.Address
	var h column.Hash
	if a.ScanBytes(address[:]) != nil || h.ScanBytes(hash[:]) != nil || a != column.Address(address) ||
		h != column.Hash(hash) {
		t.Errorf("read %v and %v", a, h)
	}
	if len(column.AddressBytes(common.Address{})) != 0 || column.AddressBytes(common.Address{}) == nil {
		t.Error("the zero address is not stored as no bytes")
	}
}

// FuzzPlainText: whatever a stranger sends, Postgres accepts what is left of it.
func FuzzPlainText(f *testing.F) {
	f.Add("a\x00b\xffc", 2)
	f.Add("日本", 4)
	f.Fuzz(func(t *testing.T, s string, longest int) {
		longest = max(0, min(longest, 1000))
		got := column.PlainText(s, longest)
		if len(got) > longest || !utf8.ValidString(got) || strings.ContainsRune(got, 0) {
			t.Errorf("%q of at most %d bytes becomes %q", s, longest, got)
		}
		if clean := column.CleanText(s); !utf8.ValidString(clean) || strings.ContainsRune(clean, 0) {
			t.Errorf("%q becomes %q", s, clean)
		}
	})
}

// FuzzEscapeNUL: the JSON of any text stays the JSON of the text, without the character that jsonb refuses.
func FuzzEscapeNUL(f *testing.F) {
	for _, s := range []string{"\x00", `\u0000`, "\\\x00", `\\u0000`, "a\x00\x00\\", "\\\\\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(map[string]string{"k": s})
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := json.Unmarshal(column.EscapeNUL(b), &got); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if want := strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD"); strings.ToValidUTF8(got["k"],
			"") != got["k"] || strings.ContainsRune(got["k"], 0) ||
			utf8.ValidString(s) && got["k"] != want {
			t.Errorf("%q becomes %q", s, got["k"])
		}
	})
}

func TestHeads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.String().Draw(t, "text"))
		bound := rapid.IntRange(0, 12).Draw(t, "bound")
		partial := false
		head := column.Head(text, bound, &partial)
		if !bytes.HasPrefix(text, head) || len(head) > bound && len(text) > bound || partial != (len(text) > bound) {
			t.Fatalf("the first %d bytes of %q are %q, partial %t", bound, text, head, partial)
		}
		if !utf8.Valid(head) && bound >= utf8.UTFMax {
			t.Fatalf("a character of %q is cut: %q", text, head)
		}
		if bound >= utf8.UTFMax && len(text) > bound && bound-len(head) >= utf8.UTFMax {
			t.Fatalf("%d bytes of %q are left out of %d", bound-len(head), text, bound)
		}
	})
}

func TestDeniedContentIsNotShown(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://a.example/x":               "https://a.example/x",
		"ipfs://bafy":                       "ipfs://bafy",
		"data:application/json,{\"a\":1}":   "data:application/json,",
		" DATA:text/plain;base64,aGk=":      "DATA:text/plain;base64,",
		"data:no comma":                     "data:",
		"data":                              "data",
		`{"name":"x"}`:                      "",
		" [1]":                              "",
		"\ufeff{\"name\":\"x\"}":            "",
		"https://a.example/?u=data:,secret": "https://a.example/?u=data:,secret",
		"":                                  "",
	} {
		if got := column.WithoutContent(uri); got != want {
			t.Errorf("%q is shown as %q, not %q", uri, got, want)
		}
	}
}

func TestKeysAreDistinct(t *testing.T) {
	t.Parallel()
	one, other := *uint256.NewInt(1), *uint256.NewInt(2)
	registry := common.HexToAddress("0x03")
	chains, tokens := column.KeyColumns([]repute.AgentID{{ChainID: 5, TokenID: one}, {ChainID: 5, TokenID: other},
		{ChainID: 5, TokenID: one, Registry: registry}, {ChainID: 6, TokenID: one}})
	if len(chains) != 3 || len(tokens) != 3 || chains[2] != 6 || tokens[1] != column.TokenNum(other) {
		t.Errorf("chains %v, tokens %v", chains, tokens)
	}
	if got := column.TokenArray([]repute.TokenID{one, other}); got != "{1,2}" {
		t.Errorf("the array is %s", got)
	}
	if got := column.TokenArray(nil); got != "{}" {
		t.Errorf("the empty array is %s", got)
	}
}
