// Package intents has the commands that find intents of agent.json manifests by their meaning, and act on them.
package intents
