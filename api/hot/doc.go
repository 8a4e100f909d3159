// Package hot keeps answers in memory for as long as they are true. An answer is kept together with the state of the
// database that it was read from, and is sent again while the database is in that very state. The state that counts is at
// most 20 milliseconds old, and never older than a write that this process committed or a change that it handed out: a
// caller reads what it wrote here, and what a stream told it. A write of another process shows 20 milliseconds later at
// most. Requests that demand a block ask for the state anew. Asking is one short statement for all requests that wait at
// the time. Answers that are read from a replica are not kept.
package hot
