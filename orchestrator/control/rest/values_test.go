package rest

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
)

// TestCursors: a cursor gives back its place in the list that it was made for, and is refused in every other one.
func TestCursors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{0,3}`)
		what, filters := name.Draw(t, "what"), rapid.SliceOfN(name, 2, 2).Draw(t, "filters")
		at := time.UnixMicro(rapid.Int64Range(0, 1<<53).Draw(t, "micros")).UTC()
		id := rapid.StringMatching(`[-_/a-zA-Z0-9]{1,64}`).Draw(t, "id")
		list := ListOf(what, filters...)
		cursor := list.Cursor(at, id)
		if gotAt, gotID, err := list.ReadCursor(cursor); err != nil || !gotAt.Equal(at) || gotID != id {
			t.Fatalf("%s, %q, %v, want %s, %q", gotAt, gotID, err, at, id)
		}
		other, otherFilters := name.Draw(t, "other"), rapid.SliceOfN(name, 2, 2).Draw(t, "other filters")
		_, _, err := ListOf(other, otherFilters...).ReadCursor(cursor)
		if same := other == what && otherFilters[0] == filters[0] &&
			otherFilters[1] == filters[1]; same != (err == nil) {
			t.Fatalf("%q %q of %q %q: %v", other, otherFilters, what, filters, err)
		}
	})
}

// FuzzReadCursor: whatever a caller sends is the place of a cursor that Cursor writes, or refused as a wrong cursor.
func FuzzReadCursor(f *testing.F) {
	list := ListOf("tasks", "", "")
	f.Add(list.Cursor(time.UnixMicro(1), "a"))
	f.Add(base64.RawURLEncoding.EncodeToString(append(list[:], "7/\x00"...)))
	f.Fuzz(func(t *testing.T, text string) {
		at, id, err := list.ReadCursor(text)
		var wrong *repute.InputError
		switch {
		case err != nil && (!errors.As(err, &wrong) || wrong.Field != "cursor"):
			t.Fatalf("%q: %v", text, err)
		case err == nil && text != "":
			if a, b, err := list.ReadCursor(list.Cursor(at, id)); err != nil || !a.Equal(at) || b != id {
				t.Fatalf("%q: %s %q, again %s %q: %v", text, at, id, a, b, err)
			}
		}
	})
}
