// Package push has the JSON shapes of what is sent when the index changes: changes of the feed, events of
// subscriptions, messages to webhooks, and webhooks themselves.
//
// A change looks alike everywhere: GET /changes, streams and messages to webhooks have a Change, and a subscription has
// a ChangeEvent with the same fields, because GraphQL has scalars of its own for JSON and times. Every shape has the
// cursor of its change, after which a receiver continues and by which it recognizes repeats.
package push
