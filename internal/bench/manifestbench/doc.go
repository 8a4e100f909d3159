// Package manifestbench measures what it takes to read, judge and verify agent.json manifests, and to find an intent
// among many by its meaning. It needs neither Postgres nor a network.
package manifestbench
