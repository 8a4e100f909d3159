// Package webhookdb owns the webhooks: addresses that changes of the feed are sent to, each with its filter, its secret
// and its place in the feed. Package webhook sends the changes.
//
// A process delivers a webhook while it holds the lease of Lease. What it stores is refused when it lost the lease, and
// when the operator changed the webhook meanwhile, which raises Version.
//
// Tables: webhooks.
package webhookdb
