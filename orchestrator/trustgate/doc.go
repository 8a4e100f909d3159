// Package trustgate decides whether an agent may do a task, from what is indexed of it: the
// final score, the identity checks, and the proof that its program speaks for its identity. A
// Verdict keeps all that it was made of, so that VerifyVerdict can make it again later.
package trustgate
