package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/httprule"
	"repute/store/webhookdb"
)

const (
	// timeout is the usual bound of one message with its answer.
	timeout = 15 * time.Second
	// maxAnswer is how many bytes of an answer are read, so that its connection can be used again. None are kept.
	maxAnswer = 4 << 10
)

// testKind is the type of messages that Test sends.
const testKind = "webhook.test"

// answer is how a receiver answered.
type answer struct {
	status     int           // 0 without an answer
	reason     string        // why the message was not accepted, empty if it was
	retryAfter time.Duration // that the receiver asks for, 0 for nothing
}

// accepted reports whether the receiver took the message.
func (a answer) accepted() bool { return a.status >= 200 && a.status < 300 }

// send posts a signed message once.
func (d *Deliverer) send(ctx context.Context, w *webhookdb.Webhook, id string, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		return answer{reason: "the URL cannot be used"}
	}
	now := d.o.Clock.Now()
	signatures, err := sign(w, id, now, body)
	if err != nil {
		return answer{reason: "the message cannot be signed"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", d.o.UserAgent)
	req.Header.Set(standardwebhooks.HeaderWebhookID, id)
	req.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	req.Header.Set(standardwebhooks.HeaderWebhookSignature, signatures)
	res, err := d.http.Do(req)
	if err != nil {
		return answer{reason: reasonOf(err)}
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // the status is the answer
	a := answer{status: res.StatusCode, retryAfter: httprule.RetryAfter(res.Header.Get("Retry-After"), now)}
	if !a.accepted() {
		a.reason = fmt.Sprintf("it answered %d", a.status)
	}
	return a
}

// sign returns the signatures of a message: by the secret, and by the former one for a while after it was rotated.
func sign(w *webhookdb.Webhook, id string, at time.Time, body []byte) (string, error) {
	secrets := []webhookdb.Secret{w.Secret}
	if w.Former != nil && at.Before(w.FormerUntil) {
		secrets = append(secrets, w.Former)
	}
	signatures := make([]string, len(secrets))
	for i, s := range secrets {
		key, err := standardwebhooks.NewWebhookRaw(s)
		if err != nil {
			return "", err
		}
		if signatures[i], err = key.Sign(id, at, body); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}

// reasonOf says why there is no answer, without the URL, which may contain a secret.
func reasonOf(err error) string {
	var timedOut net.Error
	var told *url.Error
	var dns *net.DNSError
	switch {
	case errors.As(err, &timedOut) && timedOut.Timeout():
		return "no answer in time"
	case errors.As(err, &dns):
		return "the host name cannot be resolved"
	case errors.As(err, &told):
		return told.Err.Error()
	}
	return "the request failed"
}

// Test sends a message of kind testKind to a webhook, also to a disabled one, once and outside of the order of changes.
// repute.ErrNotFound: there is no such webhook.
func (d *Deliverer) Test(ctx context.Context, id string) (push.WebhookTest, error) {
	w, err := webhookdb.Read(ctx, d.db, id)
	if err != nil {
		return push.WebhookTest{}, err
	}
	now := d.o.Clock.Now().UTC()
	body, err := json.Marshal(push.WebhookMessage{Type: testKind, Timestamp: now,
		Data: map[string]string{"webhook": id}})
	if err != nil {
		return push.WebhookTest{}, fmt.Errorf("test message: %w", err)
	}
	began := time.Now()
	a := d.send(ctx, &w, "test_"+strings.ToLower(rand.Text()), body)
	return push.WebhookTest{Status: wire.Long(a.status), Millis: wire.Long(time.Since(began).Milliseconds()),
		Reason: a.reason}, nil
}
