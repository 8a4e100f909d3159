package statement_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/statement"
)

// The clocks of the database and of the processes that sign may differ by a minute.
func TestHeadsOfTheFuture(t *testing.T) {
	t.Parallel()
	now := issued()
	head, err := statement.NewSigner(key(1), time.Hour, time.Time{},
		nil).SealHead(repute.DecisionsHead{Task: "t", Root: "r", Count: 1, Hash: common.Hash{1}}, now)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		at   time.Duration // of the last decision, from now on
		from time.Duration // that the key is in use, from now on
		err  error
		says string
	}{
		"stored now":            {0, -time.Hour, nil, ""},
		"stored a little ahead": {time.Minute, -time.Hour, nil, ""},
		"stored too far ahead": {time.Minute + time.Second, -time.Hour, statement.ErrEarly,
			"1m1s in the future"},
		"signed by a clock ahead": {-2 * time.Minute, -time.Minute, nil, ""},
		"signed by a clock too far ahead": {-2*time.Minute - time.Second, -time.Minute, statement.ErrSigner,
			"valid from"},
		"stored after now, before the key's": {0, time.Minute + time.Second, statement.ErrSigner, "valid from"},
	} {
		keys := []statement.Key{{Address: head.Signer, From: now.Add(c.from)}}
		err := statement.VerifyHead(head, now.Add(c.at), now, keys)
		if !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.err, c.says)
		}
	}
}
