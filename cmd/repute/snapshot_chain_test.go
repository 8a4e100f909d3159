package main

import (
	"testing"

	"repute"
)

// An import is compared with the endpoints of the entry that means its chain: by the id where
// the entry has one, else by the name in any case or by the id as a name.
func TestImportIsComparedWithItsChain(t *testing.T) {
	t.Parallel()
	of := repute.Chain{ID: 8453, Name: "base"}
	for _, tt := range []struct {
		entry chainConfig
		want  bool
	}{
		{chainConfig{ID: 8453, Name: "other"}, true},
		{chainConfig{ID: 5, Name: "base"}, false},
		{chainConfig{Name: "Base"}, true},
		{chainConfig{Name: "8453"}, true},
		{chainConfig{Name: "other"}, false},
	} {
		tt.entry.RPC = urls{"http://127.0.0.1:1"}
		compare, stop, err := (&program{}).comparing(config{Chains: []chainConfig{tt.entry}}, nil, of)
		if err != nil {
			t.Fatal(err)
		}
		if stop(); (compare != nil) != tt.want {
			t.Errorf("entry %q with id %d: compared %t, want %t", tt.entry.Name, tt.entry.ID, compare != nil, tt.want)
		}
	}
}
