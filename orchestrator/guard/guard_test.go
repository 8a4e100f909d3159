package guard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestCall returns what a call returns, the panic of one that panics, and leaves one behind that ignores its end.
func TestCall(t *testing.T) {
	t.Parallel()
	why := errors.New("the budget ended")
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancelCause(context.Background())
		if v, err := Call(ctx, func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
			t.Error(v, err)
		}
		var panicked *PanicError
		_, err := Call(ctx, func(context.Context) (int, error) { panic("broken") })
		if !errors.As(err, &panicked) || panicked.Value != "broken" || len(panicked.Stack) == 0 {
			t.Error(err)
		}
		time.AfterFunc(time.Second, func() { end(why) })
		if _, err = Call(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 7, nil }); !errors.Is(err,
			why) {
			t.Errorf("an answer after the end: %v", err)
		}
		release := make(chan struct{})
		began := time.Now()
		_, err = Call(ctx, func(context.Context) (int, error) { <-release; return 7, nil })
		if !errors.Is(err, errIgnored) || !errors.Is(err, why) || time.Since(began) != grace {
			t.Errorf("left behind after %s: %v", time.Since(began), err)
		}
		close(release)
	})
}
