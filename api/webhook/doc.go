// Package webhook sends changes of the feed to the webhooks that package webhookdb stores, as Standard Webhooks
// (https://www.standardwebhooks.com). Each webhook is served by the one process that has its lease: one message is
// under way at a time, in the order of the feed, and each at least once, because the place in the feed is stored after
// the receiver accepted the message, a few times a second. The id of a message is the cursor of its change, so that a
// receiver recognizes repeats.
package webhook
