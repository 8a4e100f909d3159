// Package cache has LRU caches bounded by size, for values that are expensive to compute. Callers that ask for the same
// value share one computation, and callers that would have to wait too long are refused.
//
// At most one value of a Cache is computed at a time, so that one kind of answer takes one connection of the database.
// A computation continues after its caller has left, within Bounds.Limit: others may wait for it, and the next one
// finds it. Failures are not kept. Values are shared, and callers MUST NOT change them. Brief is a Cache of one value.
package cache
