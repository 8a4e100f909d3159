package rest

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/internal/httpapi"
	"repute/store"
)

// List names what is listed and by which filters, for its cursors: in another list their place would skip or repeat
// entities. Make one with ListOf.
type List string

// ListOf returns the list of what is named, with the values of its filters in a fixed order.
func ListOf(what string, filters ...string) List {
	question, _ := store.CursorFor(what, filters) // texts always have a JSON form
	return List(question)
}

// place is the position of an entity in a list that is ordered by time and id.
type place struct {
	At time.Time `json:"t"`
	ID string    `json:"i"`
}

// Cut returns the first size of the items, which MUST have been read with a limit of size + 1, and the cursor of the
// next page, empty at the end. placeOf returns the time and the id of an item, by which the list is ordered.
func Cut[T any](l List, items []T, size int, placeOf func(T) (time.Time, string)) (page []T, next string, err error) {
	return store.Cut(items, size, string(l), func(item T) place {
		at, id := placeOf(item)
		return place{at, id}
	})
}

// ReadCursor reads a cursor that Cut returned: the time and id of the last entity of the page before. The empty text
// is the beginning of the list. repute.ErrInvalid: it is no cursor, or one of another list.
func (l List) ReadCursor(text string) (at time.Time, id string, err error) {
	p, ok, err := store.DecodeCursor[place](string(l), text)
	if ok && Known("entity", p.ID) != nil { // the database could not compare it
		err = store.BadCursor()
	}
	return p.At.UTC(), p.ID, err
}

// PageInput are the parameters of a page of a list.
type PageInput struct {
	Limit  httpapi.Number `query:"limit" minimum:"1" maximum:"200" doc:"1 to 200, 50 when absent"`
	Cursor string         `query:"cursor" doc:"nextCursor of the page before"`
}

// Size returns the number of entities of the page.
func (in *PageInput) Size() (int, error) {
	return httpapi.PageSize(in.Limit, httpapi.DefaultPage, httpapi.MaxPage)
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
