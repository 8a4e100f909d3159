package store

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"repute"
)

// Everywhere below, At has no default: the zero At is block 0, as in package repute. Callers who want the newest state
// say repute.Latest.

// MaxPage is the largest page of any list.
const MaxPage = 200

// Page is one page of a list with the blocks that it is true at: one AsOf per chain of the request.
type Page[T any] struct {
	Items []T
	Next  string // cursor of the next page, "" at the end
	AsOf  []repute.AsOf
}

// FirstRows are the first rows of a list that is read for many keys at once.
type FirstRows[T any] struct {
	Items []T
	More  bool // there are others
}

// FirstRowsOf groups ordered rows by their key. Each key has up to limit rows; More is set where rows has further ones.
func FirstRowsOf[K comparable, T any](rows []T, limit int, keyOf func(T) K) map[K]FirstRows[T] {
	out := map[K]FirstRows[T]{}
	for _, row := range rows {
		key := keyOf(row)
		first := out[key]
		if first.More = len(first.Items) == limit; !first.More {
			first.Items = append(first.Items, row)
		}
		out[key] = first
	}
	return out
}

// cursorForm is the content of a page cursor: a position, and a digest of the request that it belongs to. Callers treat
// a cursor as opaque.
type cursorForm[P any] struct {
	For string `json:"f"`
	Pos P      `json:"p"`
}

// CursorFor returns a digest of the parts of a request. A cursor of another request is refused, because its position
// would skip or repeat rows.
func CursorFor(parts ...any) (string, error) {
	b, err := json.Marshal(parts)
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:9]), err
}

// EncodeCursor returns the cursor of the position pos in the list that question names.
func EncodeCursor[P any](question string, pos P) (string, error) {
	b, err := json.Marshal(cursorForm[P]{question, pos})
	return base64.RawURLEncoding.EncodeToString(b), err
}

// DecodeCursor decodes the position of a cursor that EncodeCursor made for the same request. ok is false for an empty
// cursor.
func DecodeCursor[P any](question, cursor string) (pos P, ok bool, err error) {
	if cursor == "" {
		return pos, false, nil
	}
	var form cursorForm[P]
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(b, &form)
	}
	if err != nil {
		return pos, false, BadCursor()
	}
	if form.For != question {
		return pos, false, repute.Invalid("cursor", "belongs to a list with other filters or another order",
			"repeat the filters of the first page, or start again without a cursor")
	}
	return form.Pos, true, nil
}

// BeginPage returns the digest of a request by its parts, and the position that its page begins after: that of the
// cursor, or first for an empty one.
func BeginPage[P any](cursor string, first P, parts ...any) (question string, from P, err error) {
	if question, err = CursorFor(parts...); err != nil {
		return question, first, err
	}
	from, given, err := DecodeCursor[P](question, cursor)
	if !given {
		from = first
	}
	return question, from, err
}

// CheckLimit returns repute.ErrInvalid for a page size outside 1 to MaxPage, which is never clamped silently.
func CheckLimit(limit int) error {
	if limit < 1 || limit > MaxPage {
		return repute.Invalid("limit", fmt.Sprintf("%d is out of range", limit), fmt.Sprintf("1 to %d", MaxPage))
	}
	return nil
}

// BadCursor returns the error for a cursor that no page of the list returned.
func BadCursor() error {
	return repute.Invalid("cursor", "not a cursor of this list", "pass the next cursor of the page before, unchanged")
}

// Cut returns the first limit of the items, which were read with a limit of one more, and the cursor of the next page,
// empty when there is none. pos returns the position of an item in the list.
func Cut[T, P any](items []T, limit int, question string, pos func(T) P) ([]T, string, error) {
	if len(items) <= limit {
		return items, "", nil
	}
	items = items[:limit]
	next, err := EncodeCursor(question, pos(items[limit-1]))
	return items, next, err
}
