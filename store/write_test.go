package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// holdTable makes writers of a table wait until release is called.
func holdTable(t *testing.T, db *store.DB, table string) (release func()) {
	t.Helper()
	conn, err := pgx.ConnectConfig(ctxOf(t), db.Pool().Config().ConnConfig)
	ok(t, err)
	_, err = conn.Exec(ctxOf(t),
		"set idle_in_transaction_session_timeout = 0; begin; lock table "+table+" in exclusive mode")
	ok(t, err)
	release = sync.OnceFunc(func() { conn.Close(context.Background()) })
	t.Cleanup(release)
	return release
}

// waitBlocked waits until a session of the database waits for a lock.
func waitBlocked(t *testing.T, db *store.DB) {
	t.Helper()
	waitBlockedBy(t, db, 1)
}

// waitBlockedBy waits until that many sessions wait for locks.
func waitBlockedBy(t *testing.T, db *store.DB, sessions int) {
	t.Helper()
	for ctx := ctxOf(t); ; time.Sleep(time.Millisecond) {
		var waiting int
		ok(t, db.Pool().QueryRow(ctx, `
			select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`).Scan(&waiting))
		if waiting >= sessions {
			return
		}
	}
}

// A batch that dies half-way leaves nothing, and can be given again.
func TestDeathInABatchLeavesTheOldState(t *testing.T) {
	t.Parallel()
	kill := func(ctx context.Context, t *testing.T, db *store.DB) {
		_, err := db.Pool().Exec(ctx, `
			select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type =
				'Lock'`)
		ok(t, err)
	}
	for name, die := range map[string]func(cancel context.CancelFunc, t *testing.T, db *store.DB){
		"cancelled":       func(cancel context.CancelFunc, t *testing.T, db *store.DB) { cancel() },
		"connection lost": func(_ context.CancelFunc, t *testing.T, db *store.DB) { kill(ctxOf(t), t, db) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := testDB(t), ctxOf(t)
			ok(t, chaindb.AddChain(ctx, db, testChain(1)))
			l := smallChain()
			ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks[:1])))
			before := dump(t, ctx, db, 1)
			rest := batchOf(1, l.blocks[0].Block, l.blocks[1:])

			release := holdTable(t, db, "votes")
			mortal, cancel := context.WithCancel(ctx)
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- eventdb.Apply(mortal, db, rest) }()
			waitBlocked(t, db)
			die(cancel, t, db)
			if err := <-done; err == nil {
				t.Fatal("the batch survived")
			}
			release()
			equalDumps(t, "after death", before, dump(t, ctx, db, 1))
			ok(t, eventdb.Apply(ctx, db, rest))
		})
	}
}

func TestApplyRefusesWhatDoesNotFollow(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := smallChain()
	all := batchOf(1, l.genesis, l.blocks)
	wrongHash, swapped, headless, foreign, beyond := all, all, all, all, all
	wrongHash.Parent.Hash = common.Hash{1}
	swapped.Records = append([]repute.Record{all.Records[1], all.Records[0]}, all.Records[2:]...)
	headless.Blocks = all.Blocks[1:]
	foreign.Records = append([]repute.Record{}, all.Records...)
	foreign.Records[0].Log.Address = foreignValidation
	beyond.Records = append([]repute.Record{}, all.Records...)
	beyond.Records[len(beyond.Records)-1].Log.Index = 1 << 31
	for name, c := range map[string]struct {
		batch eventdb.Batch
		want  error
	}{
		"another parent":      {wrongHash, repute.ErrFenced},
		"disorder":            {swapped, repute.ErrInvalid},
		"an impossible place": {beyond, repute.ErrInvalid},
		"a header is missing": {headless, repute.ErrInvalid},
		"a foreign registry":  {foreign, repute.ErrConflict},
	} {
		if err := eventdb.Apply(ctx, db, c.batch); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	unknown := all
	unknown.ChainID = 7
	if err := eventdb.Apply(ctx, db, unknown); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown chain: %v", err)
	}
	ok(t, eventdb.Apply(ctx, db, all))
	cursor, err := chaindb.Cursor(ctx, db, 1)
	ok(t, err)
	if head := l.head(); cursor != head {
		t.Errorf("cursor %+v, not %+v", cursor, head)
	}
}

func TestChainIsCheckedAgainstTheStoredOne(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	c := testChain(1)
	ok(t, chaindb.AddChain(ctx, db, c))
	ok(t, chaindb.AddChain(ctx, db, c))
	for name, change := range map[string]func(*repute.Chain){
		"identity":   func(c *repute.Chain) { c.Identity = foreignValidation },
		"reputation": func(c *repute.Chain) { c.Reputation = foreignValidation },
		"start":      func(c *repute.Chain) { c.StartBlock++ },
		"imported":   func(c *repute.Chain) { c.Imported = true },
	} {
		other := c
		change(&other)
		if err := chaindb.AddChain(ctx, db, other); !errors.Is(err, repute.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	cursor, err := chaindb.Cursor(ctx, db, 1)
	ok(t, err)
	if (cursor != repute.Block{Number: firstBlock - 1}) {
		t.Errorf("cursor %+v", cursor)
	}
	if _, err := chaindb.Cursor(ctx, db, 2); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown chain: %v", err)
	}
}

// Which validation contracts are trusted is configuration: totals follow it, as
// if it had always been so.
func TestAllowListChangesTotals(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	hash, validator := common.Hash{1}, rpctest.Account(9)
	l := smallChain()
	l.extend(txOf{
		repute.ValidationRequest{Validator: validator, TokenID: token(0), RequestHash: hash},
		repute.ValidationResponse{Validator: validator, TokenID: token(0), RequestHash: hash, Response: 7},
		repute.ValidationResponse{Validator: validator, TokenID: token(0), RequestHash: common.Hash{2}, Response: 7},
	})
	trusting, wary := testChain(1), testChain(2)
	wary.Validations = nil
	for _, c := range []repute.Chain{trusting, wary} {
		ok(t, chaindb.AddChain(ctx, db, c))
		ok(t, eventdb.Apply(ctx, db, batchOf(c.ID, l.genesis, l.blocks)))
	}
	trusted, untrusted := dump(t, ctx, db, 1), dump(t, ctx, db, 2)
	if a := rows(t, trusted, "agents")[0]; a.num("validations") != 1 {
		t.Fatalf("trusted: %v", a)
	}
	trusting.ID, wary.ID = 2, 1
	ok(t, chaindb.AddChain(ctx, db, trusting))
	ok(t, chaindb.AddChain(ctx, db, wary))
	equalDumps(t, "now trusted", trusted, dump(t, ctx, db, 2))
	equalDumps(t, "no longer trusted", untrusted, dump(t, ctx, db, 1))
}

func TestWalletValueOfAnotherLengthIsNoWallet(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	wallet := rpctest.Account(8)
	l := chainOf(txOf{repute.Transfer{To: rpctest.Account(1), TokenID: token(0)}})
	set := func(value []byte) string {
		parent := l.head()
		ok(t, eventdb.Apply(ctx, db,
			batchOf(1, parent, l.extend(txOf{repute.MetadataSet{TokenID: token(0), Key: "agentWallet",
				Value: value}}))))
		return rows(t, dump(t, ctx, db, 1), "agents")[0].str("wallet")
	}
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	if got := set(common.LeftPadBytes(wallet[:], 32)); got != address(wallet) {
		t.Errorf("a padded word: %q", got)
	}
	if got := set([]byte{1, 2, 3}); got != address(wallet) {
		t.Errorf("three bytes: %q", got)
	}
	if got := set([]byte{}); got != "" {
		t.Errorf("cleared: %q", got)
	}
	if got := set(wallet[:]); got != address(wallet) {
		t.Errorf("twenty bytes: %q", got)
	}
}

// Headers of empty blocks go once finality has passed them, those that events or
// a reorganization may need stay.
func TestHeadersAreForgottenBelowFinality(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	l := smallChain()
	l.extend(txOf{}, txOf{}, txOf{}, txOf{})
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	ok(t, chaindb.SetHead(ctx, db, 1, store.Lease{},
		chaindb.Head{Head: 16, Safe: 16, Finalized: 15, SeenAt: time.Now()}))
	ok(t, chaindb.SetHead(ctx, db, 1, store.Lease{},
		chaindb.Head{Head: 14, Safe: 12, Finalized: 11, SeenAt: time.Now()}))
	blocks, err := chaindb.RecentBlocks(ctx, db, 1, 100)
	ok(t, err)
	var numbers []uint64
	for _, b := range blocks {
		numbers = append(numbers, b.Number)
	}
	if want := []uint64{16, 15, 12, 11, 10}; len(numbers) != len(want) || numbers[1] != 15 || numbers[2] != 12 {
		t.Errorf("kept %v, not %v", numbers, want)
	}
	if b, err := chaindb.StoredBlock(ctx, db, 1, 12); err != nil || b != l.blocks[2].Block {
		t.Errorf("block 12: %+v %v", b, err)
	}
	if _, err := chaindb.StoredBlock(ctx, db, 1, 13); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("block 13: %v", err)
	}
	ancestor := l.blocks[4].Block
	if err := eventdb.Rewind(ctx, db, ancestor, batchOf(1, ancestor, nil)); !errors.Is(err, repute.ErrFinalized) {
		t.Errorf("rewind below finality: %v", err)
	}
}

func TestSetErrorTakesAnyText(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	ok(t, chaindb.SetError(ctx, db, 1, store.Lease{}, "node says \x00\xff", true))
	var msg string
	var halted bool
	ok(t, db.Pool().QueryRow(ctx, `select last_error, halted from chains`).Scan(&msg, &halted))
	if msg != "node says " || !halted {
		t.Errorf("%q %t", msg, halted)
	}
	ok(t, chaindb.SetError(ctx, db, 1, store.Lease{}, "", false))
	if err := chaindb.SetError(ctx, db, 2, store.Lease{}, "", false); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown chain: %v", err)
	}
}

// Two chains that meet the same new words at once do not wait for each other.
func TestChainsShareTheDictionary(t *testing.T) {
	t.Parallel()
	db, ctx := testDB(t), ctxOf(t)
	var all sync.WaitGroup
	for id := uint64(1); id <= 4; id++ {
		ok(t, chaindb.AddChain(ctx, db, testChain(id)))
	}
	for id := uint64(1); id <= 4; id++ {
		all.Go(func() {
			l := smallChain()
			for i := range 20 {
				parent := l.head()
				b := batchOf(id, parent,
					l.extend(txOf{repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(5),
						Index: uint64(i + 1),
						Value: values[1], Tag1: string(rune('a' + i)), URI: "https://" + string(rune('a'+i))}}))
				if i == 0 {
					b = batchOf(id, l.genesis, l.blocks)
				}
				if err := eventdb.Apply(ctx, db, b); err != nil {
					t.Errorf("chain %d: %v", id, err)
				}
			}
		})
	}
	all.Wait()
	want := dump(t, ctx, db, 1)
	for id := uint64(2); id <= 4; id++ {
		equalDumps(t, "chain", want, dump(t, ctx, db, id))
	}
}

func TestPingTellsUnavailable(t *testing.T) {
	t.Parallel()
	db, err := store.Open(ctxOf(t), "postgres://nobody@127.0.0.1:1/none?connect_timeout=1", store.Options{})
	ok(t, err)
	defer db.Close()
	if err := db.Ping(ctxOf(t)); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("ping: %v", err)
	}
	if _, err := chaindb.Cursor(ctxOf(t), db, 1); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("cursor: %v", err)
	}
	ok(t, testDB(t).Ping(ctxOf(t)))
}

func TestMigrationsGoUpAndDown(t *testing.T) {
	t.Parallel()
	url, ctx := pgtest.Unmigrated(t), ctxOf(t)
	var together sync.WaitGroup
	for range 3 {
		together.Go(func() {
			if err := store.Migrate(ctx, url); err != nil {
				t.Errorf("up: %v", err)
			}
		})
	}
	together.Wait()
	ok(t, store.MigrateDown(ctx, url))
	db := openDB(t, url)
	var left int
	ok(t, db.Pool().QueryRow(ctx,
		`select count(*) from pg_tables where schemaname = 'public' and tablename !~ '^goose_'`).Scan(&left))
	if left != 0 {
		t.Errorf("%d tables left", left)
	}
	ok(t, store.Migrate(ctx, url))
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
}

// A second feedback number 1 contradicts the registry's counting; it is kept as
// such and stops nothing.
func TestRepeatedFirstFeedbackIsNotCounted(t *testing.T) {
	t.Parallel()
	db, l := indexed(t)
	ctx := ctxOf(t)
	parent := l.head()
	again := repute.NewFeedback{TokenID: token(0), Client: rpctest.Account(3), Index: 1, Value: values[1]}
	ok(t, eventdb.Apply(ctx, db, batchOf(1, parent, l.extend(txOf{again}))))
	got := dump(t, ctx, db, 1)
	if p := rows(t, got, "pending"); len(p) != 1 || p[0].str("reason") != "index_gap" {
		t.Errorf("pending %v", p)
	}
	if a := rows(t, got, "agents")[0]; a.num("feedback") != 1 {
		t.Errorf("agent %v", a)
	}
}
