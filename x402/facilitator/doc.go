// Package facilitator connects servers that are paid by x402 with facilitators over HTTP: a Client asks others, and
// NewHandler serves any x402.Facilitator.
package facilitator
