// Package trustgate decides whether an agent may do a task, from what is indexed of it: the
// final score, the identity checks, and the proof that its program speaks for its identity. A
// Decision keeps all that it was made of, so that Verify can make it again later.
package trustgate
