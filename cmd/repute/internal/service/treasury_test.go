package service

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute/contracts"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/query"
	"repute/store/walletdb"
)

// A configured treasury is indexed whichever roles the process has: with its chain's registries where the process
// indexes them, else alone.
func TestTreasuryIsIndexed(t *testing.T) {
	at := common.HexToAddress("0xaa")
	for _, roles := range []string{"indexer, orchestrator", "orchestrator"} {
		t.Run(roles, func(t *testing.T) {
			c := rpctest.New(t, rpctest.Options{})
			c.Mine(c.Register(0, rpctest.Account(1), "https://a"), rpctest.Payment(at, common.Hash{1}, 1))
			conf := loaded(t, fmt.Sprintf(`chains:
  - {name: mine, id: 31337, identity: %q, reputation: %q, start_block: 1, rpc: %q}
orchestrator:
  wallets: [{chain: mine, treasury: %q}]
roles: [%s]
`, c.Identity, c.Reputation, c.URL(), at, roles), pgtest.New(t))
			db, err := store.Open(t.Context(), conf.Database, store.Options{Decode: contracts.Read})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(db.Close)
			s := New(conf, db, slog.New(slog.DiscardHandler))
			list, err := conf.Wallets()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{}, 2)
			for _, tr := range treasuries(&conf, list) {
				go func() { s.watch(ctx, tr); done <- struct{}{} }()
			}
			if conf.Has("indexer") {
				chains, err := conf.Followed()
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = s.follow(ctx, chains[0]); done <- struct{}{} }()
			} else {
				done <- struct{}{}
			}
			t.Cleanup(func() { cancel(); <-done; <-done })
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				now, err := walletdb.ReadTreasury(t.Context(), db, 31337, at)
				if err == nil && now.Cursor.Hash == c.Head().Hash() {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%+v, %v", now, err)
				}
			}
			events, err := walletdb.TreasuryEventsOfRun(t.Context(), db, common.Hash{1})
			if err != nil || len(events) != 1 {
				t.Errorf("events %+v, %v", events, err)
			}
			if chains, err := query.Chains(t.Context(), db); err != nil || (len(chains) == 1) != conf.Has("indexer") {
				t.Errorf("chains %+v, %v", chains, err)
			}
		})
	}
}
