// Package webhookdb owns the webhooks: addresses that changes of the feed are sent to, each with its filter, its secret
// and its place in the feed. Package webhook sends the changes.
//
// An operator adds, removes, replays and rotates webhooks (Add, Remove, Replay, Rotate). One process at a time delivers
// a webhook: the one that has the lease of Lease. It stores its progress with SaveDelivered, SavePosition, SaveFailure
// and Disable, which change nothing when it lost the lease (repute.ErrFenced), and nothing when the operator changed
// the webhook meanwhile, which raises Version (repute.ErrConflict): then it reads the webhook again.
//
// The position moves after the receiver accepted a message, so that a crash in between sends the message once more, and
// no message is skipped: one that fails is sent again until it is accepted, or Disable stops the webhook.
//
// Filter.Feed is what the feed itself filters by, and Filter.Selects the rest, which needs the data of a change.
//
// A Secret is stored as it is, because messages are signed with it. It prints as a placeholder, so that no log, error
// or answer shows it; Text is the one way to its text.
//
// Tables: webhooks.
package webhookdb
