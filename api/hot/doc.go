// Package hot keeps answers in memory for as long as they are true. An answer is kept together with the state of the
// database that it was read from, and is sent again while the database is in that very state, so that no reader sees
// anything older than without it. Asking for the state is one short statement for all requests that wait at the time.
// Answers that are read from a replica are not kept.
package hot
