package wire

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	cases := []struct{ raw, shown, hex string }{
		{"", "", ""},
		{"plain", "plain", ""},
		{"ünï 🦊", "ünï 🦊", ""},
		{"<script>alert(1)</script>", "<script>alert(1)</script>", ""},
		{"a\x00b", "a\uFFFDb", "0x610062"},
		{"\xff\xfe", "\uFFFD", "0xfffe"},
		{"\uFFFD", "\uFFFD", ""},
		{"half\xf0\x9f", "half\uFFFD", "0x68616c66f09f"},
	}
	for _, c := range cases {
		shown, raw := text(c.raw)
		got := ""
		if raw != nil {
			got = string(*raw)
		}
		if shown != c.shown || got != c.hex {
			t.Errorf("%q: %q %q, want %q %q", c.raw, shown, got, c.shown, c.hex)
		}
	}
}

func TestPlainText(t *testing.T) {
	for raw, want := range map[string]bool{"": true, "gpt-4": true, "two\nlines": true, "\x00": false, "\xff": false,
		"\x1b[2J": false} {
		if got := PlainText([]byte(raw)) != nil; got != want {
			t.Errorf("%q: %v", raw, got)
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	cases := map[string]string{
		"":            "",
		"no url here": "no url here",
		`Post "https://eth.example/v3/SECRET": timeout`:     `Post "https://eth.example": timeout`,
		"wss://user:pw@node.example:8546/KEY?a=b went away": "wss://node.example:8546 went away",
		"two: http://a/1 http://b/2":                        "two: http://a http://b",
		"https://rpc.example?key=SECRET":                    "https://rpc.example",
	}
	for in, want := range cases {
		if got := WithoutSecrets(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzText: what is shown survives JSON unchanged, and the raw bytes can always
// be had back.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a", "a\x00", "\xff", "\xed\xa0\x80", "é\xcc"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		shown, inHex := text(raw)
		if !utf8.ValidString(shown) || strings.ContainsRune(shown, 0) {
			t.Fatalf("%q is shown as %q", raw, shown)
		}
		encoded, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(encoded, &back); err != nil || back != shown {
			t.Fatalf("%q came back as %q, %v", shown, back, err)
		}
		if inHex == nil {
			if shown != raw {
				t.Fatalf("%q became %q without its bytes", raw, shown)
			}
			return
		}
		bytes, err := hex.DecodeString(string(*inHex)[2:])
		if err != nil || string(bytes) != raw {
			t.Fatalf("%q has hex %s", raw, *inHex)
		}
	})
}
