// Package hot caches answers together with the state of the database that they were read from, for at most one second.
// A cached answer is sent while the last known state is the same. That state is at most 20 milliseconds old, and never
// older than a write that this process committed or a change that it handed out: a caller sees its own writes, and
// every change that a stream of this process sent. A write of another process shows 20 milliseconds later at most.
// Requests that demand a block ask for the state anew. Asking is one short statement for all requests that wait at the
// time. Answers that are read from a replica are not kept.
package hot
