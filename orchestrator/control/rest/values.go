package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
)

// List is a digest of what is listed and by which filters, for its cursors: in another list their place would skip or
// repeat entities. Make one with ListOf.
type List [9]byte

// ListOf returns the list of what is named, with the values of its filters in a fixed order.
func ListOf(what string, filters ...string) (l List) {
	sum := sha256.Sum256([]byte(what + "\x00" + strings.Join(filters, "\x00")))
	copy(l[:], sum[:])
	return l
}

// Cursor returns the cursor of a place in a list that is ordered by time and id.
func (l List) Cursor(at time.Time, id string) string {
	place := strconv.AppendInt(l[:], at.UnixMicro(), 10)
	return base64.RawURLEncoding.EncodeToString(append(append(place, '/'), id...))
}

// ReadCursor reads a cursor that Cursor wrote: the time and id of the last entity of the page before. The empty text
// is the beginning of the list. repute.ErrInvalid: it is no cursor, or one of another list.
func (l List) ReadCursor(text string) (at time.Time, id string, err error) {
	if text == "" {
		return at, "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(raw) > len(l) && !bytes.HasPrefix(raw, l[:]) {
		return at, "", repute.Invalid("cursor", "belongs to another list, or to one with other filters",
			"repeat the filters of the first page, or start again without a cursor")
	}
	place, isOurs := bytes.CutPrefix(raw, l[:])
	micros, id, found := strings.Cut(string(place), "/")
	n, err2 := strconv.ParseInt(micros, 10, 64)
	if err != nil || err2 != nil || !isOurs || !found || n < 0 || n > 1<<53 || len(id) > 2*maxID ||
		httpapi.Clean(id) != id {
		return at, "", repute.Invalid("cursor", "is not a cursor of this list", "nextCursor of the page before")
	}
	return time.UnixMicro(n).UTC(), id, nil
}

// IDInput is the path parameter of an entity with an id.
type IDInput struct {
	ID string `path:"id"`
}

// Object is a JSON object as it was stored.
type Object json.RawMessage

// Schema implements huma.SchemaProvider.
func (Object) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeObject} }

// MarshalJSON returns the stored bytes.
func (o Object) MarshalJSON() ([]byte, error) { return json.RawMessage(o).MarshalJSON() }

// UnmarshalJSON copies the bytes without decoding them.
func (o *Object) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(o).UnmarshalJSON(raw) }

// ObjectOf returns JSON that was stored as an object, nil for JSON of another kind.
func ObjectOf(raw json.RawMessage) Object {
	if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
		return nil
	}
	return Object(raw)
}

// SlugInput is the path parameter of an agent.
type SlugInput struct {
	Slug string `path:"slug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" maxLength:"64"`
}

// OrEmpty returns a list that is written as [], never as null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OptionalTime returns nil for the zero time.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Amounts are the limits of a run, or the part of them that it used.
type Amounts struct {
	Steps     int    `json:"maxSteps"`
	ToolCalls int    `json:"maxToolCalls"`
	Writes    int    `json:"maxOnchainWrites"`
	RuntimeMS int64  `json:"maxRuntimeMs"`
	GasWei    string `json:"maxGasWei,omitempty"`
	Tokens    int64  `json:"maxTokens,omitempty"`  // of language models
	CostUSD   string `json:"maxCostUsd,omitempty"` // of language models, in dollars
}

// AmountsOf returns limits, or used amounts, in the form of the API.
func AmountsOf(l repute.Limits) Amounts {
	a := Amounts{Steps: l.Steps, ToolCalls: l.ToolCalls, Writes: l.Writes, RuntimeMS: l.Runtime.Milliseconds(),
		GasWei: l.GasWei, Tokens: l.Tokens}
	if l.Cost > 0 {
		a.CostUSD = l.Cost.String()
	}
	return a
}
