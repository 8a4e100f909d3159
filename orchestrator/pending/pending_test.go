package pending

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"repute"
	"repute/orchestrator/transaction"
	"repute/store"
)

// TestOutcome journals a reverted transaction as failed, and gives back of its charge what its fee left.
func TestOutcome(t *testing.T) {
	t.Parallel()
	o, err := Outcome(transaction.Sent{OK: true, FeeWei: "70"}, "100", nil)
	if err != nil || o.Error != "" || o.Ref == "" || o.GasWei != "-30" {
		t.Errorf("mined: %+v, %v", o, err)
	}
	o, err = Outcome(transaction.Sent{FeeWei: "70"}, "100", nil)
	if err == nil || !strings.Contains(o.Error, "reverted") || o.Ref == "" {
		t.Errorf("reverted: %+v, %v", o, err)
	}
	refused := errors.New("refused")
	if o, err = Outcome(transaction.Sent{}, "100", refused); !errors.Is(err, refused) || o.Ref != "" ||
		o.GasWei != "-100" {
		t.Errorf("refused: %+v, %v", o, err)
	}
}

// TestOpen leaves a transaction open only where its result is unknown.
func TestOpen(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		open bool
	}{
		"sent":        {context.Background(), nil, false},
		"refused":     {context.Background(), repute.ErrInvalid, false},
		"no endpoint": {context.Background(), fmt.Errorf("send: %w", repute.ErrUnavailable), true},
		"no database": {context.Background(), fmt.Errorf("send: %w", store.ErrDatabase), true},
		"canceled":    {ended, repute.ErrInvalid, true},
		"sent, ended": {ended, nil, false},
	} {
		if Open(c.ctx, c.err) != c.open {
			t.Errorf("%s: open is not %v", name, c.open)
		}
	}
}
