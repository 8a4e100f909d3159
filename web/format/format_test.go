package format

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// invisible reports whether a character cannot be seen or changes the direction of others, joiners of emoji excepted.
func invisible(r rune) bool {
	return r != 0x200d && r != 0xfe0f && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) ||
		unicode.Is(unicode.Co, r) ||
		r == 0x2028 || r == 0x2029)
}

// TestCleanTexts: an untrusted text is bounded and shows everything that it has.
func TestCleanTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune{0x202e, 0, 0x301, ' ', 'a', '\n',
			0x200b, 0xfeff}), 0, 200, -1)).
			Draw(t, "text")
		most := rapid.IntRange(1, 100).Draw(t, "most")
		out := Clean(text, most)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, invisible) {
			t.Fatalf("%q became %q", text, out)
		}
		// A character becomes at most ten: ⟨U+10FFFF⟩.
		if n := utf8.RuneCountInString(out); n > 10*most+1 {
			t.Fatalf("%d characters of at most %d: %q", n, most, out)
		}
		if text != "" && strings.TrimSpace(out) == "" {
			t.Fatalf("%q shows nothing", text)
		}
		if plain := !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e || r < ' ' }); plain &&
			len(text) <= most && out != text && strings.TrimSpace(text) != "" {
			t.Fatalf("%q became %q", text, out)
		}
	})
	for text, want := range map[string]string{
		"\u202Etxt.exe": "⟨U+202E⟩txt.exe", "a\x00b": "a⟨U+0000⟩b", "two\nlines": "two lines", "": "",
		"  \n": "⟨blank⟩", "\u3164": "⟨blank⟩", "\u2800 ": "⟨blank⟩", "👩‍👩‍👧": "👩‍👩‍👧",
		"e\u0301": "e\u0301", "e" + strings.Repeat("\u0301", 50): "e" + strings.Repeat("\u0301", 4)} {
		if got := Clean(text, 80); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// TestHostsOfLinks: only what names its host plainly may become a link.
func TestHostsOfLinks(t *testing.T) {
	t.Parallel()
	for link, want := range map[string]string{
		"https://agent.example/x": "agent.example", "http://127.0.0.1:8080/": "127.0.0.1", "https://[::1]/": "::1",
		"https://bücher.example/": "xn--bcher-kva.example", "javascript:alert(1)": "", "data:text/html,x": "",
		"https://user:pass@agent.example/": "", "https://real.example@evil.example/": "", "//evil.example/": "",
		"ipfs://x": "",
		"https://": "", "https://a b/": "", "https://" + strings.Repeat("a", 3000): "", "\x00https://x.example": "",
	} {
		if got := hostOf(link); got != want {
			t.Errorf("%q: %q, want %q", link, got, want)
		}
	}
}

// FuzzHostOf: whatever a stranger gives, a link's host is ASCII or nothing.
func FuzzHostOf(f *testing.F) {
	f.Add("https://agent.example/")
	f.Add("https://\u202eexample")
	f.Fuzz(func(t *testing.T, link string) {
		for _, r := range hostOf(link) {
			if r > 0x7e || r <= ' ' || strings.ContainsRune(`<>"'@/\`, r) {
				t.Fatalf("%q: %q", link, hostOf(link))
			}
		}
	})
}

// TestIdenticons: the same id has the same picture whatever its capitals, and others have others.
func TestIdenticons(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringMatching(`0x[0-9a-fA-F]{40}`).Draw(t,
			"a"), rapid.StringMatching(`0x[0-9a-fA-F]{40}`).Draw(t, "b")
		if identicon(a) != identicon(strings.ToUpper(a)) {
			t.Fatal("capitals matter")
		}
		if !strings.EqualFold(a, b) && identicon(a) == identicon(b) {
			t.Fatalf("%s and %s look the same", a, b)
		}
		if ok := regexp.MustCompile(`^<svg class="identicon" viewBox="-\.5 -\.5 6 6" aria-hidden="true"><path fill="hsl\(\d+ 55% 50%\)" d="[M0-9hv1z -]*"/></svg>$`).
			MatchString(string(identicon(a))); !ok {
			t.Fatal(identicon(a))
		}
	})
}

// TestDrawingsStayInBounds: whatever numbers come, bars and gauges do not leave their boxes.
func TestDrawingsStayInBounds(t *testing.T) {
	t.Parallel()
	number := regexp.MustCompile(`(?: x| width)="([^"]*)"`)
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64()
		value, low, high := f.Draw(t, "value"), f.Draw(t, "low"), f.Draw(t, "high")
		for _, svg := range []string{string(bar(value, low)), string(gauge(value, min(low, high), max(low, high)))} {
			for _, n := range number.FindAllStringSubmatch(svg, -1) {
				if len(n[1]) > 7 || strings.Contains(n[1], "NaN") || strings.Contains(n[1], "Inf") {
					t.Fatalf("%s", svg)
				}
			}
		}
	})
}

// TestTimesForPeople says how long ago in one unit.
func TestTimesForPeople(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{0: "now", 5 * time.Second: "5 s ago", 90 * time.Second: "1 min ago",
		-time.Minute: "1 min from now", 47 * time.Hour: "47 h ago", 72 * time.Hour: "3 days ago",
		100 * 24 * time.Hour: "3 months ago", 3 * 365 * 24 * time.Hour: "3 years ago"} {
		if got := ago(now, now.Add(-d)); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// TestNumbersForPeople groups digits and writes minus as such.
func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Count(0): "0", Count(1234567): "1\u202f234\u202f567", Count(-1000): "−1\u202f000", score(-3.14159): "−3.1",
		sign(2):            "+2.0",
		Plural(1, "party"): "1 party", Plural(2, "party"): "2 parties", Plural(0, "block"): "0 blocks",
		Shorten("0x1234567890abcdef1234567890abcdef12345678"): "0x1234…5678", Shorten("short"): "short",
		tokenOf("eip155:8453:0x8004:22"): "8453:22", tokenOf("8453:22"): "8453:22",
		Wei("0"): "0 wei", Wei("1000"): "1\u202f000 wei", Wei("1500000000"): "1.5 gwei",
		Wei("1500000000000000000"): "1.5 coins",
		Wei("9999999999999999"):    "0.009999 coins", Wei("<b>"): "<b>", Wei("-1"): "-1",
		Wei("12345000000000000000000"): "12\u202f345 coins",
		Millis(-1):                     "unknown", Millis(999): "999 ms", Millis(1500): "1.5 s",
		Millis(600_000): "10 min",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestAmountsForPeople: an amount of any size is written in few characters.
func TestAmountsForPeople(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`(0|[1-9][0-9]{0,77})`).Draw(t, "wei")
		if out := Wei(digits); len(out) > 100 || !strings.HasSuffix(out, "wei") && !strings.HasSuffix(out, "coins") ||
			strings.HasPrefix(out, "0 ") && digits != "0" {
			t.Fatalf("%s is %q", digits, out)
		}
	})
}
