// Package cache keeps values that are expensive to compute, bounded by their size. Callers that ask for the same value
// share one computation, and callers that would have to wait too long are refused.
package cache
