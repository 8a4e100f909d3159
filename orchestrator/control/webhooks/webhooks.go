// Package webhooks serves the routes by which an operator adds, lists, tests and removes webhooks, to which changes
// of the index are sent. Package webhook of the API sends them; here are only the rows that say what is sent where.
//
// All routes need the role operate, also those that read, because the address of a webhook may be a secret of its
// receiver. A secret is shown when it is made, by add and rotate, and never again. A new webhook begins at the newest
// change, or after a cursor that the feed still has. The host of a URL is checked when a webhook is added, and the
// addresses behind it with each message.
package webhooks

import (
	"context"
	"net/http"
	"net/url"

	"repute"
	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/store"
	"repute/store/webhookdb"
)

// Sender sends a test message to a webhook.
type Sender interface {
	Test(ctx context.Context, id string) (push.WebhookTest, error)
}

// Options configure the routes.
type Options struct {
	DB *store.DB
	// Sender sends test messages. Nil: this process sends none.
	Sender Sender
	// Allowed returns why a URL may not be requested. Nil: every https URL may be.
	Allowed func(*url.URL) error
}

// service serves the routes.
type service struct{ Options }

// Mount adds the routes to a router. All of them need a token, also those that only read, because the URL of a webhook
// may be a secret.
func Mount(router *rest.Router, o Options) {
	s := &service{o}
	rest.Read(router, "/webhooks", "list-webhooks",
		"Lists webhooks, the oldest first, without their secrets; needs the role operate", s.list)
	rest.Read(router, "/webhooks/{id}", "get-webhook", "Returns a webhook without its secret; needs the role operate",
		s.get)
	rest.Write[push.WebhookRequest](router, http.MethodPost, "/webhooks", "add-webhook",
		"Adds a webhook, to which changes are sent in order, and shows its secret this once", s.add)
	rest.Write[rest.None](router, http.MethodDelete, "/webhooks/{id}", "remove-webhook", "Removes a webhook", s.remove)
	rest.Write[rest.None](router, http.MethodPost, "/webhooks/{id}/test", "test-webhook",
		"Sends a test message to a webhook and returns how it was answered", s.test)
	rest.Write[push.WebhookReplay](router, http.MethodPost, "/webhooks/{id}/replay", "replay-webhook",
		"Sends changes after a cursor again, or continues a webhook that was disabled", s.replay)
	rest.Write[rest.None](router, http.MethodPost, "/webhooks/{id}/rotate", "rotate-webhook",
		"Gives a webhook a new secret and shows it this once; for 24 hours messages are signed with both", s.rotate)
	router.AddStatus("201", "Created: the webhook with its secret", "/webhooks")
	router.Protect("/webhooks", "/webhooks/{id}")
}

// list serves GET /v1/webhooks.
func (s *service) list(ctx context.Context, _ *struct{}) (*rest.Answer[push.WebhookList], error) {
	list, err := webhookdb.List(ctx, s.DB)
	if err != nil {
		return nil, err
	}
	return rest.Say(&push.WebhookList{Webhooks: wire.Each(list, push.EncodeWebhook)}), nil
}

// get serves GET /v1/webhooks/{id}.
func (s *service) get(ctx context.Context, in *rest.IDInput) (*rest.Answer[push.Webhook], error) {
	w, err := s.read(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return rest.Say(&w), nil
}

// read returns a webhook as it is shown. repute.ErrNotFound when there is none.
func (s *service) read(ctx context.Context, id string) (push.Webhook, error) {
	if err := rest.Known("webhook", id); err != nil {
		return push.Webhook{}, err
	}
	w, err := webhookdb.Read(ctx, s.DB, id)
	if err != nil {
		return push.Webhook{}, err
	}
	return push.EncodeWebhook(w), nil
}

// add serves POST /v1/webhooks.
func (s *service) add(ctx context.Context, by string, _ *struct{},
	r push.WebhookRequest) (*rest.Answer[push.WebhookWithSecret],
	error) {
	if err := s.checkURL(r.URL); err != nil {
		return nil, err
	}
	w := webhookdb.Webhook{URL: r.URL, Filter: r.Filter.Decode(), By: by}
	if err := w.Filter.Check(); err != nil {
		return nil, err
	}
	var err error
	if r.Since == nil {
		w.Cursor, err = s.DB.NewestChange(ctx)
	} else {
		w.Cursor, err = *r.Since, s.kept(ctx, *r.Since)
	}
	if err != nil {
		return nil, err
	}
	if w, err = webhookdb.Add(ctx, s.DB, w); err != nil {
		return nil, err
	}
	out := rest.Say(&push.WebhookWithSecret{Webhook: push.EncodeWebhook(w), Secret: w.Secret.Text()})
	out.Status, out.Location = http.StatusCreated, rest.Prefix+"/webhooks/"+w.ID
	return out, nil
}

// checkURL returns repute.ErrInvalid for a URL that messages are not sent to. The addresses behind its host are checked
// with each message.
func (s *service) checkURL(text string) error {
	const hint = "https://host/path, at a public host on port 443 or one of allow_hosts"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Fragment != "":
		return repute.Invalid("url", "is no URL", hint)
	case s.Allowed == nil && u.Scheme != "https":
		return repute.Invalid("url", "is not https", hint)
	case s.Allowed == nil:
		return nil
	}
	if err := s.Allowed(u); err != nil {
		return repute.Invalid("url", httpapi.Clean(err.Error()), hint)
	}
	return nil
}

// kept returns repute.ErrInvalid for a text that is no cursor of the feed, and repute.ErrGone, which names the oldest
// one, for a cursor that is no longer kept. The empty one is always kept.
func (s *service) kept(ctx context.Context, cursor string) error {
	_, _, err := s.DB.Changes(ctx, cursor, 1, store.ChangeFilter{})
	return err
}

// remove serves DELETE /v1/webhooks/{id}.
func (s *service) remove(ctx context.Context, _ string, in *rest.IDInput,
	_ rest.None) (*rest.Answer[push.Webhook], error) {
	w, err := s.read(ctx, in.ID)
	if err == nil {
		err = webhookdb.Remove(ctx, s.DB, in.ID)
	}
	if err != nil {
		return nil, err
	}
	return rest.Say(&w), nil
}

// test serves POST /v1/webhooks/{id}/test.
func (s *service) test(ctx context.Context, _ string, in *rest.IDInput,
	_ rest.None) (*rest.Answer[push.WebhookTest], error) {
	if s.Sender == nil {
		return nil, &repute.MissingError{What: "sender of webhooks", Why: "is not part of this process"}
	}
	if err := rest.Known("webhook", in.ID); err != nil {
		return nil, err
	}
	out, err := s.Sender.Test(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return rest.Say(&out), nil
}

// replay serves POST /v1/webhooks/{id}/replay.
func (s *service) replay(ctx context.Context, _ string, in *rest.IDInput,
	r push.WebhookReplay) (*rest.Answer[push.Webhook], error) {
	w, err := s.read(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	cursor := w.Cursor
	if r.Since != nil {
		cursor = *r.Since
	}
	if err := s.kept(ctx, cursor); err != nil {
		return nil, err
	}
	if err := webhookdb.Replay(ctx, s.DB, in.ID, cursor); err != nil {
		return nil, err
	}
	return s.get(ctx, in)
}

// rotate serves POST /v1/webhooks/{id}/rotate.
func (s *service) rotate(ctx context.Context, _ string, in *rest.IDInput,
	_ rest.None) (*rest.Answer[push.WebhookWithSecret], error) {
	if err := rest.Known("webhook", in.ID); err != nil {
		return nil, err
	}
	secret, err := webhookdb.Rotate(ctx, s.DB, in.ID)
	if err != nil {
		return nil, err
	}
	w, err := s.read(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return rest.Say(&push.WebhookWithSecret{Webhook: w, Secret: secret.Text()}), nil
}
