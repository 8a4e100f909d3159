package wire

import (
	"fmt"
	"strconv"
	"unicode/utf8"

	"repute"
	"repute/internal/httpapi"
)

// Texts on the chain and in documents may be of any length. Answers show their beginning,
// which ends with an ellipsis, and name the path of the whole text.
const (
	// maxShown bounds a text in bytes as JSON writes them, the ellipsis included.
	maxShown = 2048
	// maxShownHex bounds the texts whose raw bytes come along when they had to be mended.
	maxShownHex = 512
	// maxShownDocument bounds all texts of a document, and of its problems: an answer has
	// most of them twice.
	maxShownDocument = 12 << 10
	// maxShownMetadata bounds all keys and values of an agent.
	maxShownMetadata = 12 << 10
	// maxShownList is how many entries of a document's list, and of its problems, are shown.
	maxShownList = 100
	ellipsis     = "…"
)

// Cut names a text of an answer that was cut.
type Cut struct {
	Field string  `json:"field" doc:"where the text is in this object" example:"document"`
	Whole *string `json:"whole" doc:"path that gives the whole; null where the bytes of the document were dropped to save space" example:"/agents/8453:22/uri"`
}

// cutter shows texts of one object, and keeps which of them were cut.
type cutter struct {
	left int // bytes that may still be shown
	cuts []Cut
}

// unboundedCutter shows few texts, each bounded by itself.
func unboundedCutter() *cutter { return &cutter{left: 1 << 30, cuts: []Cut{}} }

// note keeps that a field was cut; of one whole the first field is named. An empty whole is
// kept no more.
func (c *cutter) note(field, whole string) {
	for _, known := range c.cuts {
		if known.Whole != nil && *known.Whole == whole {
			return
		}
	}
	c.cuts = append(c.cuts, Cut{field, OrNull(whole)})
}

// shown is the head of a text; all reports whether it is the whole. goesOn tells that
// raw is a head already.
func (c *cutter) shown(raw string, goesOn bool) (shown string, all bool) {
	clean := httpapi.Clean(raw)
	limit := max(0, min(maxShown, c.left))
	n, cost := jsonHead(clean, limit)
	if n == len(clean) && !goesOn {
		c.left -= cost
		return clean, true
	}
	n, cost = jsonHead(clean, max(0, limit-len(ellipsis)))
	c.left -= cost + len(ellipsis)
	return clean[:n] + ellipsis, false
}

// chain shows a text of the chain. The hex form of its raw bytes comes with it where it
// had to be mended and is short; of a longer one the whole has them.
func (c *cutter) chain(raw, field, whole string, goesOn bool) (shown string, hex *Hex) {
	clean, hex := text(raw)
	shown, all := c.shown(clean, goesOn || hex != nil && len(raw) > maxShownHex)
	if !all {
		c.note(field, whole)
		return shown, nil
	}
	return shown, hex
}

// jsonHead is how many bytes of a clean text JSON writes in no more than limit, and in how
// many. It ends at a character.
func jsonHead(s string, limit int) (n, cost int) {
	for i, r := range s {
		size := utf8.RuneLen(r)
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t':
			size = 2
		case r < ' ' || r == '<' || r == '>' || r == '&' || r == '\u2028' || r == '\u2029':
			size = 6
		}
		if cost+size > limit {
			return i, cost
		}
		cost += size
	}
	return len(s), cost
}

// BriefText is a text of bounded length that no link belongs to.
func BriefText(s string) string {
	shown, _ := unboundedCutter().shown(s, false)
	return shown
}

// URIPath is where the whole URI is that an agent has in a view.
func URIPath(id repute.AgentID, at repute.At) string {
	path := "/agents/" + id.Short() + "/uri"
	switch {
	case at.Finality == repute.Latest:
		return path
	case at.Finality != "":
		return path + "?at=" + string(at.Finality)
	}
	return path + "?at=" + strconv.FormatUint(at.Block, 10)
}

// TextPath is where the whole of a text is that an agent got by an event.
func TextPath(id repute.AgentID, p repute.Point, field string) string {
	return fmt.Sprintf("/agents/%s/texts/%d/%d/%s", id.Short(), p.Block, p.LogIndex, field)
}

// documentPath is where the bytes of a document are, "" where they were dropped.
func documentPath(sum [32]byte, dropped bool) string {
	if dropped {
		return ""
	}
	return fmt.Sprintf("/documents/0x%x", sum)
}
