// Package trustgate decides whether an agent may do a task by its indexed data: the final score,
// the identity checks, and the proof that its program acts for its identity. A Decision contains
// all its evidence, so that Verify can compute it again later.
package trustgate
