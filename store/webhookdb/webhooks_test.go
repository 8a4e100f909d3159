package webhookdb_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/webhookdb"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

// A process that lost the lease of a webhook, or does not know of a change by the operator, stores nothing about it.
func TestProgressIsFenced(t *testing.T) {
	t.Parallel()
	db := open(t)
	made, err := webhookdb.Add(t.Context(), db, webhookdb.Webhook{URL: "https://a.example", Cursor: "c0"})
	ok(t, err)
	lost, err := db.Acquire(t.Context(), webhookdb.Lease(made.ID), "one", time.Minute)
	ok(t, err)
	ok(t, db.Release(t.Context(), lost))
	lease, err := db.Acquire(t.Context(), webhookdb.Lease(made.ID), "two", time.Minute)
	ok(t, err)
	at := time.Now().UTC().Truncate(time.Millisecond)
	failure := webhookdb.Failure{Attempts: 3, Since: at, Next: at.Add(time.Hour), Status: 500, Reason: "status 500\x00"}
	type write struct {
		name  string
		do    func(store.Lease, *webhookdb.Webhook) error
		check func(webhookdb.Webhook) bool
	}
	writes := []write{
		{"failure", func(l store.Lease, w *webhookdb.Webhook) error {
			return webhookdb.SaveFailure(t.Context(), db, l, w, failure)
		}, func(w webhookdb.Webhook) bool {
			return w.Failure.Attempts == 3 && w.Failure.Next.Equal(at.Add(time.Hour)) && w.Failure.Reason == "status 500"
		}},
		{"position", func(l store.Lease, w *webhookdb.Webhook) error {
			return webhookdb.SavePosition(t.Context(), db, l, w, "c1")
		}, func(w webhookdb.Webhook) bool { return w.Cursor == "c1" && w.Delivered == 0 && w.Failure.Attempts == 3 }},
		{"delivered", func(l store.Lease, w *webhookdb.Webhook) error {
			err := webhookdb.SaveDelivered(t.Context(), db, l, w, "c2", 5, at)
			if err == nil { // as after a commit whose answer was lost
				err = webhookdb.SaveDelivered(t.Context(), db, l, w, "c2", 5, at)
			}
			return err
		}, func(w webhookdb.Webhook) bool {
			return w.Cursor == "c2" && w.Delivered == 5 && w.DeliveredAt.Equal(at) && w.Failure == webhookdb.Failure{}
		}},
		{"disabled", func(l store.Lease, w *webhookdb.Webhook) error {
			return webhookdb.Disable(t.Context(), db, l, w, "gone")
		}, func(w webhookdb.Webhook) bool { return w.Disabled == "gone" && !w.DisabledAt.IsZero() }},
	}
	read := func() webhookdb.Webhook {
		t.Helper()
		w, err := webhookdb.Read(t.Context(), db, made.ID)
		ok(t, err)
		return w
	}
	for _, w := range writes {
		before := read()
		old := before
		old.Version--
		for _, refused := range []struct {
			lease store.Lease
			as    *webhookdb.Webhook
			want  error
		}{{lost, &before, repute.ErrFenced}, {lease, &old, repute.ErrConflict}} {
			if err := w.do(refused.lease, refused.as); !errors.Is(err, refused.want) {
				t.Errorf("%s: %v, want %v", w.name, err, refused.want)
			}
		}
		if now := read(); fmt.Sprintf("%+v", now) != fmt.Sprintf("%+v", before) {
			t.Errorf("%s that was refused stored %+v", w.name, now)
		}
		ok(t, w.do(lease, &before))
		if now := read(); !w.check(now) {
			t.Errorf("%s stored %+v", w.name, now)
		}
	}
	ok(t, webhookdb.Replay(t.Context(), db, made.ID, "c0"))
	if now := read(); now.Disabled != "" || now.Cursor != "c0" || now.Version == made.Version {
		t.Errorf("after a replay: %+v", now)
	}
	if err := writes[1].do(lease, &made); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a process that does not know of the replay: %v", err)
	}
}

// A new secret does not end the one before at once, and neither shows in what is printed.
func TestSecrets(t *testing.T) {
	t.Parallel()
	db := open(t)
	made, err := webhookdb.Add(t.Context(), db, webhookdb.Webhook{URL: "https://a.example"})
	ok(t, err)
	fresh, err := webhookdb.Rotate(t.Context(), db, made.ID)
	ok(t, err)
	now, err := webhookdb.Read(t.Context(), db, made.ID)
	ok(t, err)
	if !bytes.Equal(now.Secret, fresh) || !bytes.Equal(now.Former, made.Secret) || bytes.Equal(fresh, made.Secret) ||
		now.FormerUntil.Before(made.Created) || len(fresh) < 24 {
		t.Errorf("the secrets are not the new one and the one before, until %s", now.FormerUntil)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("webhook", "secret", fresh, "webhook", now)
	encoded, err := json.Marshal(now)
	ok(t, err)
	bare := strings.TrimPrefix(fresh.Text(), "whsec_")
	for _, text := range []string{log.String(), string(encoded), fmt.Sprint(now), fmt.Sprintf("%+v %#v %s %v", now, now,
		fresh, fresh), fmt.Sprint(fmt.Errorf("webhook %v", now))} {
		if strings.Contains(text, bare) || strings.Contains(text, fmt.Sprint([]byte(fresh))) ||
			!strings.Contains(text, "[secret]") {
			t.Errorf("shown: %s", text)
		}
	}
	for name, err := range map[string]error{"remove": webhookdb.Remove(t.Context(), db, "wh_none"),
		"replay": webhookdb.Replay(t.Context(), db, "\x00", "")} {
		if !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%s of an unknown webhook: %v", name, err)
		}
	}
}
