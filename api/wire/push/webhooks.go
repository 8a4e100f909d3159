package push

import (
	"time"

	"repute"
	"repute/api/wire"
	"repute/store"
	"repute/store/webhookdb"
)

// WebhookMessage is the body of a message to a webhook, in the form of Standard Webhooks.
type WebhookMessage struct {
	Type      string    `json:"type"`      // kind of the change
	Timestamp time.Time `json:"timestamp"` // when the index learned it
	Data      any       `json:"data"`      // a Change, as GET /changes shows it
}

// EncodeMessage writes the message about a change.
func EncodeMessage(c *store.Change) WebhookMessage {
	return WebhookMessage{Type: c.Kind, Timestamp: c.At, Data: EncodeChange(c)}
}

// WebhookFilter selects the changes that a webhook is sent.
type WebhookFilter struct {
	Agent    string    `json:"agent,omitempty" maxLength:"160" example:"8453:22" doc:"only changes of this agent, {chainId}:{tokenId}"`
	Chain    wire.Long `json:"chain,omitempty" minimum:"0" doc:"only changes of this chain"`
	Kinds    []string  `json:"kinds,omitempty" maxItems:"50" doc:"only these kinds of changes; all when absent"`
	Below    *float64  `json:"below,omitempty" minimum:"-100" maximum:"100" doc:"only changes of scores of which exactly one of old and new is below this"`
	Above    *float64  `json:"above,omitempty" minimum:"-100" maximum:"100" doc:"only changes of scores of which exactly one of old and new is above this"`
	Tier     bool      `json:"tier,omitempty" doc:"only changes of scores that change the tier"`
	Finality string    `json:"finality,omitempty" enum:"latest,finalized" doc:"finalized: only what no reorganization undoes; latest when absent"`
}

// Decode returns the filter that is stored.
func (f *WebhookFilter) Decode() webhookdb.Filter {
	return webhookdb.Filter{Agent: f.Agent, Chain: uint64(f.Chain), Kinds: f.Kinds, Below: f.Below, Above: f.Above,
		Tier:     f.Tier,
		Finality: repute.Finality(f.Finality)}
}

// encodeFilter writes a stored filter.
func encodeFilter(f *webhookdb.Filter) WebhookFilter {
	return WebhookFilter{Agent: f.Agent, Chain: wire.Long(f.Chain), Kinds: f.Kinds, Below: f.Below, Above: f.Above,
		Tier:     f.Tier,
		Finality: string(f.Finality)}
}

// Webhook is a stored webhook, without its secret.
type Webhook struct {
	ID          string          `json:"id" example:"wh_4f6tx3l2qk7vqy5m2d6zj3r3ae"`
	URL         string          `json:"url" example:"https://example.com/hook"`
	Filter      WebhookFilter   `json:"filter"`
	State       string          `json:"state" enum:"active,failing,disabled" doc:"failing: the next message was refused and is sent again; disabled: nothing is sent"`
	Reason      *string         `json:"reason" doc:"why it is disabled; null otherwise"`
	Cursor      string          `json:"cursor" doc:"place in the feed up to which everything was delivered or not selected"`
	Delivered   wire.Long       `json:"delivered" doc:"messages that the receiver accepted"`
	DeliveredAt *wire.Time      `json:"deliveredAt" format:"date-time" doc:"of the last one; null before the first"`
	Failure     *WebhookFailure `json:"failure" doc:"of the message that is next; null where it was not refused"`
	CreatedAt   wire.Time       `json:"createdAt" format:"date-time"`
	By          string          `json:"by" doc:"name of the token that added it"`
}

// WebhookFailure says how the attempts to deliver a message went.
type WebhookFailure struct {
	Attempts wire.Long `json:"attempts"`
	Since    wire.Time `json:"since" format:"date-time"`
	NextAt   wire.Time `json:"nextAt" format:"date-time" doc:"of the next attempt"`
	Status   wire.Long `json:"status" doc:"of the last answer; 0 without an answer"`
	Reason   string    `json:"reason"`
}

// EncodeWebhook writes a webhook.
func EncodeWebhook(w webhookdb.Webhook) Webhook {
	out := Webhook{ID: w.ID, URL: w.URL, Filter: encodeFilter(&w.Filter), State: "active", Cursor: w.Cursor,
		Delivered: wire.Long(w.Delivered), DeliveredAt: wire.EncodeTime(w.DeliveredAt),
		CreatedAt: *wire.EncodeTime(w.Created), By: w.By}
	if f := w.Failure; f.Attempts > 0 {
		out.State = "failing"
		out.Failure = &WebhookFailure{Attempts: wire.Long(f.Attempts), Since: *wire.EncodeTime(f.Since),
			NextAt: *wire.EncodeTime(f.Next),
			Status: wire.Long(f.Status), Reason: f.Reason}
	}
	if w.Disabled != "" {
		out.State, out.Reason = "disabled", &w.Disabled
	}
	return out
}

// WebhookList has all webhooks.
type WebhookList struct {
	Webhooks []Webhook `json:"webhooks"`
}

// WebhookRequest adds a webhook.
type WebhookRequest struct {
	URL    string        `json:"url" minLength:"1" maxLength:"2048" example:"https://example.com/hook" doc:"https, at a public host or one of allow_hosts"`
	Filter WebhookFilter `json:"filter,omitempty"`
	Since  *string       `json:"since,omitempty" maxLength:"40" doc:"cursor after which changes are sent, empty for the oldest change that is kept; absent: from now on"`
}

// WebhookWithSecret is a webhook that was added, or whose secret was rotated.
type WebhookWithSecret struct {
	Webhook
	Secret string `json:"secret" doc:"signs the messages; it is never shown again"`
}

// WebhookReplay continues a webhook from another place.
type WebhookReplay struct {
	Since *string `json:"since,omitempty" maxLength:"40" doc:"cursor after which changes are sent again, empty for the oldest change that is kept; absent: where it stopped"`
}

// WebhookTest is how a receiver answered a test.
type WebhookTest struct {
	Status wire.Long `json:"status" doc:"of the answer; 0 without one"`
	Millis wire.Long `json:"millis" doc:"until the answer"`
	Reason string    `json:"reason" doc:"why it counts as refused; empty where it was accepted"`
}
