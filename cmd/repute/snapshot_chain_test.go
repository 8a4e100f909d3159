package main

import (
	"testing"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
)

// An import is compared with the endpoints of the entry that means its chain: by the id where
// the entry has one, else by the name in any case or by the id as a name.
func TestImportIsComparedWithItsChain(t *testing.T) {
	t.Parallel()
	of := repute.Chain{ID: 8453, Name: "base"}
	for _, tt := range []struct {
		entry config.ChainConfig
		want  bool
	}{
		{config.ChainConfig{ID: 8453, Name: "other"}, true},
		{config.ChainConfig{ID: 5, Name: "base"}, false},
		{config.ChainConfig{Name: "Base"}, true},
		{config.ChainConfig{Name: "8453"}, true},
		{config.ChainConfig{Name: "other"}, false},
	} {
		tt.entry.RPC = config.URLs{"http://127.0.0.1:1"}
		compare, stop, err := comparing((&cli.Program{}), config.Config{Chains: []config.ChainConfig{tt.entry}},
			nil, of)
		if err != nil {
			t.Fatal(err)
		}
		if stop(); (compare != nil) != tt.want {
			t.Errorf("entry %q with id %d: compared %t, want %t", tt.entry.Name, tt.entry.ID, compare != nil, tt.want)
		}
	}
}
