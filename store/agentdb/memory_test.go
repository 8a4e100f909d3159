package agentdb_test

import (
	"slices"
	"testing"

	"repute/store/agentdb"
)

// Blocks belong to an agent and a session, the newest text of a label counts, and a search finds the words of
// all sessions of one agent, best first.
func TestMemory(t *testing.T) {
	db := open(t)
	for _, b := range []agentdb.MemoryBlock{{Session: "one", Label: "user", Text: "likes coffee"},
		{Session: "one", Label: "user", Text: "Ann likes green tea"}, {Session: "two", Label: "notes",
			Text: "tea tea tea\x00"},
		{Session: "two", Label: "user", Text: "Bob"}} {
		ok(t, agentdb.PutMemory(t.Context(), db, "acme/a", b))
	}
	ok(t, agentdb.PutMemory(t.Context(), db, "acme/other", agentdb.MemoryBlock{Session: "one", Label: "user",
		Text: "tea"}))
	got, err := agentdb.Memory(t.Context(), db, "acme/a", "one")
	ok(t, err)
	if want := []agentdb.MemoryBlock{{Session: "one", Label: "user", Text: "Ann likes green tea"}}; !slices.Equal(got,
		want) {
		t.Errorf("blocks %+v", got)
	}
	if found, err := agentdb.SearchMemory(t.Context(), db, "acme/a", "tw", "tea",
		10); err != nil || len(found) != 1 || found[0].Session != "two" {
		t.Errorf("in the scope of one session: %+v, %v", found, err)
	}
	for query, want := range map[string]int{"tea": 2, "green": 1, "coffee": 0, "bob or coffee": 1, `green "-tea`: 2, "coffee\ngreen": 1, "coffee\ttea": 2,
		"": 0, "' ) | (": 0} {
		found, err := agentdb.SearchMemory(t.Context(), db, "acme/a", "", query, 10)
		if ok(t, err); len(found) != want {
			t.Errorf("%q finds %+v, want %d", query, found, want)
		}
	}
}
