package webhookdb

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"repute"
	"repute/store"
	"repute/store/changedata"
)

// FuzzFilter reads filters as they are stored and received: one that Check accepts selects without an error what the
// feed gives for it, and survives being stored.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{`{}`, `{"agent":"9:7","below":20}`,
		`{"kinds":["score.changed"],"tier":true,"finality":"finalized"}`,
		`{"agent":"eip155:9:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:7","chain":9}`, `{"agent":"7"}`,
		`{"above":1e300}`} {
		f.Add(s, `{"mode":"final","old":null,"new":{"status":"rated","score":19.999,"tier":2}}`)
	}
	f.Fuzz(func(t *testing.T, text, data string) {
		var filter Filter
		if json.Unmarshal([]byte(text), &filter) != nil {
			return
		}
		if err := filter.Check(); err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatalf("%s: %v", text, err)
			}
			return
		}
		feed, err := filter.Feed()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		stored, err := json.Marshal(filter)
		var again Filter
		if err != nil || json.Unmarshal(stored, &again) != nil || again.Check() != nil {
			t.Fatalf("%s is stored as %s: %v", text, stored, err)
		}
		c := store.Change{Kind: changedata.KindScore, ChainID: feed.ChainID, TokenID: feed.TokenID,
			Data: json.RawMessage(data)}
		if !json.Valid(c.Data) {
			return
		}
		selected, err := filter.Selects(&c)
		if other, e := again.Selects(&c); other != selected || (e == nil) != (err == nil) {
			t.Fatalf("%s and %s select differently", text, stored)
		}
	})
}

// The part of a filter that the feed applies has the kinds and finality that bounds of scores need.
func TestFilterOfTheFeed(t *testing.T) {
	t.Parallel()
	bound := 20.0
	f := Filter{Agent: "9:7", Below: &bound, Finality: repute.Finalized}
	feed, err := f.Feed()
	if err != nil || feed.ChainID != 9 || feed.TokenID == nil || feed.TokenID.Dec() != "7" || !feed.Final ||
		!slices.Equal(feed.Kinds, []string{changedata.KindScore}) {
		t.Errorf("%+v, %v", feed, err)
	}
	for name, wrong := range map[string]Filter{"kinds": {Kinds: []string{"x"}}, "agent": {Agent: "7"},
		"finality": {Finality: "soon"}, "below": {Below: ptr(101)},
		"bounds and kinds": {Kinds: []string{"agent.uri"}, Tier: true},
		"two chains":       {Agent: "9:7", Chain: 8}} {
		if err := wrong.Check(); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ptr(f float64) *float64 { return &f }
