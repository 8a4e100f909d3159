// Package push has the JSON shapes of what is sent when the index changes: changes of the feed, events of
// subscriptions, messages to webhooks, and webhooks themselves.
package push
