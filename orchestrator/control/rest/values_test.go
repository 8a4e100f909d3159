package rest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/store"
)

// cut returns the cursor after an entity that is not the last one of a list.
func cut(l List, at time.Time, id string) (string, error) {
	page, next, err := Cut(l, []string{id, "another"}, 1, func(id string) (time.Time, string) { return at, id })
	if err == nil && !slices.Equal(page, []string{id}) {
		err = errors.New("the page has other entities")
	}
	return next, err
}

// TestCursors: a cursor gives back its place in the list that it was made for, and is refused in every other one.
func TestCursors(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{0,3}`)
		what, filters := name.Draw(t, "what"), rapid.SliceOfN(name, 2, 2).Draw(t, "filters")
		at := time.UnixMicro(rapid.Int64Range(0, 1<<53-1).Draw(t, "micros")).UTC()
		id := rapid.StringMatching(`[-_/a-zA-Z0-9]{1,64}`).Draw(t, "id")
		cursor, err := cut(ListOf(what, filters...), at, id)
		if err != nil {
			t.Fatal(err)
		}
		gotAt, gotID, err := ListOf(what, filters...).ReadCursor(cursor)
		if err != nil || !gotAt.Equal(at) || gotID != id {
			t.Fatalf("%s, %q, %v, want %s, %q", gotAt, gotID, err, at, id)
		}
		other, otherFilters := name.Draw(t, "other"), rapid.SliceOfN(name, 2, 2).Draw(t, "other filters")
		_, _, err = ListOf(other, otherFilters...).ReadCursor(cursor)
		if same := other == what && slices.Equal(otherFilters, filters); same != (err == nil) {
			t.Fatalf("%q %q of %q %q: %v", other, otherFilters, what, filters, err)
		}
	})
}

// The last page has no cursor, and the empty cursor is the beginning.
func TestLastPage(t *testing.T) {
	t.Parallel()
	place := func(id string) (time.Time, string) { return time.UnixMicro(1), id }
	if page, next, err := Cut("x", []string{"a"}, 1, place); err != nil || next != "" || len(page) != 1 {
		t.Errorf("%q, %q, %v", page, next, err)
	}
	if at, id, err := ListOf("tasks").ReadCursor(""); err != nil || !at.IsZero() || id != "" {
		t.Errorf("%s, %q, %v", at, id, err)
	}
}

// FuzzReadCursor: whatever a caller sends is the place of a cursor that Cut returns, with an id that the database can
// compare, or refused as a wrong cursor.
func FuzzReadCursor(f *testing.F) {
	list := ListOf("tasks", "", "")
	for _, id := range []string{"a", "a\x00", "\xff", string(make([]byte, 1000))} {
		cursor, err := store.EncodeCursor(string(list), place{time.UnixMicro(1), id})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at, id, err := list.ReadCursor(text)
		var wrong *repute.InputError
		switch {
		case err != nil && (!errors.As(err, &wrong) || wrong.Field != "cursor"):
			t.Fatalf("%q: %v", text, err)
		case err == nil && Known("entity", id) != nil:
			t.Fatalf("%q: the id %q is taken", text, id)
		case err == nil && text != "" && at.Year() >= 0: // others have no JSON form
			again, err := cut(list, at, id)
			if err != nil {
				t.Fatal(err)
			}
			if a, b, err := list.ReadCursor(again); err != nil || !a.Equal(at) || b != id {
				t.Fatalf("%q: %s %q, again %s %q: %v", text, at, id, a, b, err)
			}
		}
	})
}
