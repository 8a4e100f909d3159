// Package badge draws the badge of an agent: an SVG image with a label and a message. It is pure. An image has no
// script, no style sheet and no reference to another file, and its own background, so that it reads alike on dark and
// light pages.
package badge

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"repute"
)

// Badge is what an image shows.
type Badge struct {
	// Label is the left part.
	Label string
	// Message is the right part.
	Message string
	// Color is the background of the message, as SVG writes it.
	Color string
	// Stale draws the message as one that may be out of date.
	Stale bool
}

// maxLabel is the most characters of a label.
const maxLabel = 40

// Colors of messages. White text has a contrast of 4.5 or more on each of them.
const (
	gray   = "#5c6370"
	red    = "#b3261e"
	amber  = "#8a5a00"
	olive  = "#56700c"
	green  = "#2b7a2b"
	strong = "#156b4a"
)

// Unknown returns the badge of an agent that is not indexed.
func Unknown(label string) Badge { return Badge{Label: label, Message: "unknown", Color: gray} }

// Of returns the badge of a score: the score and the tier of a rated agent, and otherwise its status alone, because its
// score means little or nothing.
func Of(label string, s repute.Score, isStale bool) Badge {
	b := Badge{Label: label, Message: string(repute.Unrated), Color: gray, Stale: isStale}
	switch {
	case s.Status == repute.Rated:
		b.Message = fmt.Sprintf("%.1f · tier %d", float64(s.Score)/1000, s.Tier)
		b.Color = []string{red, amber, olive, green, strong}[min(max(s.Tier, 0), 4)]
	case s.Status == repute.Thin:
		b.Message, b.Color = fmt.Sprintf("%.1f · thin", float64(s.Score)/1000), amber
	}
	return b
}

// CheckLabel returns a label as it is drawn. repute.ErrInvalid: it is too long, or no line of text.
func CheckLabel(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "", repute.Invalid("label", "is no line of printable text", "letters, digits, signs and spaces")
	}
	if utf8.RuneCountInString(s) > maxLabel {
		return "", repute.Invalid("label", "is too long", fmt.Sprintf("at most %d characters", maxLabel))
	}
	return s, nil
}

// Sizes in pixels.
const (
	height = 20
	pad    = 6 // beside a text
	narrow = 4
	usual  = 7
	wide   = 11
)

// widthOf estimates the width of a text. The image fixes it by textLength, whichever font the reader has.
func widthOf(s string) (w int) {
	for _, r := range s {
		switch {
		case strings.ContainsRune(" .,:;'|!ijlIt·()[]", r):
			w += narrow
		case r < unicode.MaxLatin1 && r != 'm' && r != 'w' && r != 'M' && r != 'W':
			w += usual
		default:
			w += wide
		}
	}
	return w
}

// SVG draws the badge.
func (b Badge) SVG() []byte {
	message := b.Message
	if b.Stale {
		message += " · stale"
	}
	left, right := widthOf(b.Label), widthOf(message)
	edge, width := left+2*pad, left+right+4*pad
	opacity := "1"
	if b.Stale {
		opacity = "0.75"
	}
	label, said := escaped(b.Label), escaped(message)
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" aria-label="%s: %s">`,
		width, height, label, said)
	fmt.Fprintf(&out, `<title>%s: %s</title>`, label, said)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="3" fill="#383d47"/>`, width, height)
	fmt.Fprintf(&out, `<path d="M%d 0h%da3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-%dz" fill="%s" fill-opacity="%s"/>`,
		edge, width-edge-3, width-edge-3, b.Color, opacity)
	out.WriteString(`<g fill="#fff" font-family="Verdana,Geneva,DejaVu Sans,sans-serif" font-size="11">`)
	for _, t := range []struct {
		at, length int
		text       string
	}{{pad, left, label}, {edge + pad, right, said}} {
		if t.length > 0 {
			fmt.Fprintf(&out, `<text x="%d" y="14" textLength="%d" lengthAdjust="spacingAndGlyphs">%s</text>`, t.at,
				t.length,
				t.text)
		}
	}
	out.WriteString(`</g></svg>`)
	return out.Bytes()
}

// escaped returns a text as it may stand in an element or in an attribute in double quotes.
func escaped(s string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(s)) // a buffer takes every write
	return out.String()
}
