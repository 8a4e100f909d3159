// Package format writes numbers, times and untrusted texts for people, in HTML and in words, and explains numbers and
// codes. What it returns as HTML is made of numbers and constants alone; untrusted texts are returned as text, which
// html/template escapes.
package format

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/idna"
)

const (
	// longText bounds a text of others in a page, in characters: a description.
	longText = 1200
	// shortText bounds one in a cell of a table, such as a name or a tag.
	shortText = 80
)

// Funcs returns the functions of templates.
func Funcs() template.FuncMap {
	return template.FuncMap{
		"anchor": Anchor, "bar": bar, "count": Count, "dict": dict, "gauge": gauge, "host": hostOf,
		"identicon": identicon,
		"icon":      icon, "join": strings.Join, "long": func(t string) string { return Clean(t, longText) },
		"lower": strings.ToLower, "number": Number, "orElse": OrElse, "percent": percent, "pct": pct, "plural": Plural,
		"score": score, "short": Short, "shorten": Shorten, "span": span,
		"time":  func(t *time.Time) template.HTML { return when(time.Now(), t) },
		"title": capital, "tokenOf": tokenOf, "words": words, "sign": sign,
		"list":  func(items ...any) []any { return items },
		"chart": Chart, "dollars": Dollars, "millis": Millis, "wei": Wei,
		// A pointer is true for templates also where it points to false or zero.
		"yes": func(p *bool) bool { return p != nil && *p }, "some": func(n *int64) bool { return n != nil && *n > 0 },
	}
}

// Short returns an untrusted text for a cell of a table: see Clean.
func Short(text string) string { return Clean(text, shortText) }

// Clean makes an untrusted text showable: bounded to a number of characters, with characters that control direction or
// cannot be seen replaced by their code points. A text of blanks alone is written as such, so that a link or heading of
// it has something to read. html/template escapes the rest.
func Clean(text string, most int) string {
	var out strings.Builder
	n, joined := 0, 0
	for _, r := range text {
		if n++; n > most {
			out.WriteString("…")
			break
		}
		// Some accents stack on a letter in many languages; dozens only cover the lines above.
		if unicode.Is(unicode.Mn, r) {
			if joined++; joined > 4 {
				continue
			}
		} else {
			joined = 0
		}
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(' ')
		case r == unicode.ReplacementChar:
			out.WriteRune(r)
		case r == 0x200d || r == 0xfe0f: // within emoji
			out.WriteRune(r)
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r), r == 0x2028, r == 0x2029:
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		default:
			out.WriteRune(r)
		}
	}
	if text != "" && strings.TrimFunc(out.String(), blank) == "" {
		return "⟨blank⟩"
	}
	return out.String()
}

// blank reports whether a character draws nothing by itself: spaces, joiners, accents without a letter, fillers.
func blank(r rune) bool {
	return unicode.IsSpace(r) || r == 0x200d || r == 0x2800 ||
		unicode.In(r, unicode.Mn, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Shorten returns an address or hash by its ends, and any other text as it is.
func Shorten(hex string) string {
	if strings.HasPrefix(hex, "0x") && len(hex) > 14 {
		return hex[:6] + "…" + hex[len(hex)-4:]
	}
	return hex
}

// hostOf returns the host of an https or http URL in ASCII, so that letters that look alike show; "" where the URL must
// not become a link.
func hostOf(link string) string {
	u, err := url.Parse(strings.TrimSpace(link))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || len(link) > 2048 {
		return ""
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	if host, err = idna.Lookup.ToASCII(host); err != nil {
		return ""
	}
	return host
}

// Count writes a number with a thin space between thousands.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "−", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return sign + digits
}

// score writes a score, or the points of one, with one decimal.
func score(f float64) string {
	return strings.Replace(strconv.FormatFloat(f, 'f', 1, 64), "-", "−", 1)
}

// sign writes points with their sign.
func sign(f float64) string {
	if f > 0 {
		return "+" + score(f)
	}
	return score(f)
}

// Number writes a fraction with as many digits as mean something.
func Number(f float64) string {
	return strings.Replace(strconv.FormatFloat(f, 'g', 3, 64), "-", "−", 1)
}

// percent writes a part of one.
func percent(f float64) string { return strconv.FormatFloat(100*f, 'f', 0, 64) + "\u202f%" }

// pct returns n of all as a fraction from 0 to 1, and 0 when all is 0.
func pct(n, all int64) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// Plural writes a number with its noun: as it is for 1, otherwise with s, or with ies instead of a final y.
func Plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "y") {
		return Count(n) + " " + strings.TrimSuffix(noun, "y") + "ies"
	}
	return Count(n) + " " + noun + "s"
}

// capital writes a word with a capital.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// OrElse returns the text that p points to, and otherwise another one.
func OrElse(p *string, other string) string {
	if p == nil || strings.TrimSpace(*p) == "" {
		return other
	}
	return *p
}

// tokenOf returns chain and token of an agent's id: eip155:8453:0x…:22 is 8453:22.
func tokenOf(id string) string {
	if parts := strings.Split(id, ":"); len(parts) == 4 {
		return parts[1] + ":" + parts[3]
	}
	return id
}

// when writes a time relative to now, with the absolute one on hover.
func when(now time.Time, t *time.Time) template.HTML {
	if t == nil {
		return `<span class="soft">time unknown</span>`
	}
	u := t.UTC()
	//nolint:gosec // made of numbers alone
	return template.HTML(`<time datetime="` + u.Format(time.RFC3339) + `" title="` +
		u.Format("2006-01-02 15:04:05 UTC") + `">` +
		ago(now, u) + `</time>`)
}

// span writes a duration in seconds.
func span(seconds int64) string {
	d := time.Duration(seconds) * time.Second
	switch {
	case d < 2*time.Minute:
		return strconv.FormatInt(seconds, 10) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// dict makes the argument of a part of a page from pairs of name and value.
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("dict: a name without a value")
	}
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, isText := pairs[i].(string)
		if !isText {
			return nil, fmt.Errorf("dict: %v is no name", pairs[i])
		}
		out[name] = pairs[i+1]
	}
	return out, nil
}

// ago says how long ago a time was, for people.
func ago(now, t time.Time) string {
	d := now.Sub(t)
	suffix := " ago"
	if d < 0 {
		d, suffix = -d, " from now"
	}
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%d s%s", int(d.Seconds()), suffix)
	case d < time.Hour:
		return fmt.Sprintf("%d min%s", int(d.Minutes()), suffix)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h%s", int(d.Hours()), suffix)
	case d < 60*24*time.Hour:
		return fmt.Sprintf("%d days%s", int(d.Hours()/24), suffix)
	case d < 2*365*24*time.Hour:
		return fmt.Sprintf("%d months%s", int(d.Hours()/24/30.4), suffix)
	}
	return fmt.Sprintf("%d years%s", int(d.Hours()/24/365), suffix)
}

// Anchor returns a text for ids of elements that depends on an untrusted text alone, so that an element keeps its id
// while others before it appear and disappear.
func Anchor(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
