package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"repute/api/wire/push"
	"repute/store"
	"repute/store/webhookdb"
)

const (
	// firstBackoff is the pause after the first failure. It doubles with each failure, up to maxBackoff.
	firstBackoff = 5 * time.Second
	maxBackoff   = time.Hour
	// maxRetryAfter bounds what a receiver may ask for by Retry-After.
	maxRetryAfter = 6 * time.Hour
	// giveUpAfter is how long a message is tried before its webhook is disabled.
	giveUpAfter = 3 * 24 * time.Hour
	// deliveredEvery is the interval in which the place in the feed is stored while messages are accepted one after the
	// other. A process that dies sends the messages of such an interval again; storing it after each would take longer
	// than the message.
	deliveredEvery = 250 * time.Millisecond
)

// errDisabled ends a delivery whose webhook was disabled.
var errDisabled = errors.New("webhook disabled")

// delivery sends the changes of one webhook.
type delivery struct {
	*Deliverer
	lease store.Lease
	w     webhookdb.Webhook
	saved time.Time // when the place in the feed was stored last
	// Messages that were accepted since then: how many, and the cursor and the time of the last one.
	unsaved int
	last    string
	lastAt  time.Time
}

// follow sends selected changes until an error, which it returns.
func (v *delivery) follow(ctx context.Context) error {
	filter, err := v.w.Filter.Feed()
	if err != nil {
		return v.disable(ctx, fmt.Sprintf("its filter cannot be used by this version: %v", err))
	}
	v.saved = time.Now()
	at := v.w.Cursor
	err = v.o.Feed.Follow(ctx, at, filter, func(list []store.Change, next string) error {
		for i := range list {
			if err := v.take(ctx, &list[i]); err != nil {
				return err
			}
			at = list[i].Cursor
		}
		if err := v.flush(ctx); err != nil {
			return err
		}
		at = next
		if v.w.Cursor == next || time.Since(v.saved) < positionEvery {
			return nil
		}
		return v.savePosition(ctx, next)
	})
	if ctx.Err() != nil &&
		at != v.w.Cursor { // not stored, so that a later process would look at the same changes again
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if v.flush(ctx) == nil && at != v.w.Cursor {
			_ = v.savePosition(ctx, at)
		}
	}
	return err
}

// savePosition stores a place in the feed up to which everything was delivered or not selected.
func (v *delivery) savePosition(ctx context.Context, cursor string) error {
	err := webhookdb.SavePosition(ctx, v.db, v.lease, &v.w, cursor)
	if err == nil {
		v.w.Cursor, v.saved = cursor, time.Now()
	}
	return err
}

// take delivers a change if the filter selects it.
func (v *delivery) take(ctx context.Context, c *store.Change) error {
	selected, err := v.w.Filter.Selects(c)
	if err != nil {
		return err
	}
	if !selected {
		return nil
	}
	return v.deliver(ctx, c)
}

// deliver sends a change until the receiver accepts it. errDisabled: it did not, and the webhook is disabled.
func (v *delivery) deliver(ctx context.Context, c *store.Change) error {
	body, err := json.Marshal(push.EncodeMessage(c))
	if err != nil {
		return fmt.Errorf("message of change %s: %w", c.Cursor, err)
	}
	for {
		if wait := v.w.Failure.Next.Sub(v.o.Clock.Now()); wait > 0 {
			v.o.Clock.Pause(ctx, wait)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		a := v.send(ctx, &v.w, c.Cursor, body)
		if err := ctx.Err(); err != nil {
			return err
		}
		now := v.o.Clock.Now()
		if a.accepted() {
			v.last, v.lastAt, v.unsaved = c.Cursor, now, v.unsaved+1
			if v.w.Failure.Attempts == 0 && time.Since(v.saved) < deliveredEvery {
				return nil
			}
			return v.flush(ctx)
		}
		if err := v.failed(ctx, a, now); err != nil {
			return err
		}
	}
}

// flush stores that messages were accepted. It may be called again after an error: see webhookdb.SaveDelivered.
func (v *delivery) flush(ctx context.Context) error {
	if v.unsaved == 0 {
		return nil
	}
	err := webhookdb.SaveDelivered(ctx, v.db, v.lease, &v.w, v.last, v.unsaved, v.lastAt)
	if err == nil {
		v.w.Cursor, v.w.Failure, v.saved, v.unsaved = v.last, webhookdb.Failure{}, time.Now(), 0
	}
	return err
}

// failed stores a failure, or disables the webhook.
func (v *delivery) failed(ctx context.Context, a answer, now time.Time) error {
	if err := v.flush(ctx); err != nil {
		return err
	}
	f := &v.w.Failure
	if f.Attempts == 0 {
		f.Since = now
	}
	f.Attempts++
	f.Status, f.Reason = a.status, a.reason
	f.Next = now.Add(backoff(f.Attempts, a.retryAfter))
	if err := webhookdb.SaveFailure(ctx, v.db, v.lease, &v.w, *f); err != nil {
		return err
	}
	switch {
	case a.status == http.StatusGone:
		return v.disable(ctx, "the receiver answered 410 Gone: it wants no more messages")
	case now.Sub(f.Since) >= giveUpAfter:
		return v.disable(ctx, fmt.Sprintf("a message was refused for %d hours, %d times, the last time because of: %s",
			int(giveUpAfter.Hours()), f.Attempts, a.reason))
	}
	return nil
}

// disable stops the webhook for a reason that the operator is shown. It returns errDisabled, or why that was not
// stored.
func (v *delivery) disable(ctx context.Context, reason string) error {
	if err := webhookdb.Disable(ctx, v.db, v.lease, &v.w, reason); err != nil {
		return err
	}
	v.o.Log.WarnContext(ctx, "a webhook was disabled", "webhook", v.w.ID, "reason", reason)
	return errDisabled
}

// backoff returns the pause after a number of failures in a row: exponential, with a quarter of jitter, and not shorter
// than what the receiver asked for, within a bound.
func backoff(attempts int, retryAfter time.Duration) time.Duration {
	pause := maxBackoff
	if shift := attempts - 1; shift < 10 {
		pause = min(maxBackoff, firstBackoff<<shift)
	}
	pause += time.Duration((rand.Float64() - 0.5) / 2 * float64(pause))
	return max(pause, min(retryAfter, maxRetryAfter))
}
