package identity

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
)

// What documents say of time, and when they were read by whose clock, enters nothing.
func TestDocumentClocksMoveNothing(t *testing.T) {
	t.Parallel()
	read := func(when time.Time, updated string) *trust.Identity {
		return Of(repute.AgentID{ChainID: 9}, common.Address{7},
			trustdb.Identity{ParserVersion: 3, Document: repute.Document{
				Status: repute.DocumentOK, SHA256: [32]byte{1}, FetchedAt: when, NextTry: when,
				Registration: &repute.Registration{Extra: map[string]json.RawMessage{"updatedAt": json.RawMessage(updated),
					"operatorWallet": json.RawMessage(`"` + common.Address{7}.Hex() + `"`)}}}})
	}
	now := read(time.Unix(1_800_000_000, 0), "1800000000")
	for _, other := range []*trust.Identity{read(time.Unix(1<<40, 0), "99999999999999"), read(time.Time{}, "-1"),
		read(time.Unix(-1, 0), `"tomorrow"`)} {
		if !reflect.DeepEqual(now, other) || !other.Resolves || !other.Declares {
			t.Errorf("%+v, by another clock %+v", now, other)
		}
	}
}

// A file that its host took away resolves no more, whatever was read of it.
func TestFileTakenAway(t *testing.T) {
	t.Parallel()
	read := trustdb.Identity{ParserVersion: 3, Document: repute.Document{Status: repute.DocumentOK, SHA256: [32]byte{1},
		Registration: &repute.Registration{}}}
	if i := Of(repute.AgentID{ChainID: 9}, common.Address{7}, read); !i.Resolves || i.Gone {
		t.Errorf("there: %+v", i)
	}
	read.Gone = true
	if i := Of(repute.AgentID{ChainID: 9}, common.Address{7}, read); i.Resolves || !i.Gone {
		t.Errorf("gone: %+v", i)
	}
}
