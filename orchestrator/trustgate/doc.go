// Package trustgate decides whether an agent may do a task by its indexed data: the final score, the identity checks,
// and the proof that its program acts for its identity.
//
// Decide reads this data, and has the policy compare it with the thresholds of the task and its own. The result is a
// Decision with all that it follows from: the agent as the policy saw it, the Pin of the score (its block, and the
// hashes of everything that it was computed from), the Proof, the task, and the hash of the policy's text.
// Gate.Decide also stores that text. So Verify can make a decision again at any later time, on any machine with the
// database: it replays the score, compares, and applies the stored policy. Texts of reasons are not compared, because
// they may improve between versions.
//
// Only final scores count. An agent that is not indexed, or that nobody rated, is unrated, with a score of 0 and the
// widest bounds: a threshold that it must reach refuses it. A failure, such as a database that is unavailable, is an
// error and never a decision.
//
// A Proof says how the program was registered: by a signature of the agent's wallet or owner, by a domain that the
// agent's file names and that names the agent, or by a configured key. It is checked against the index of now (Look,
// Fault), so that the sale of an identity ends the right to work under it.
package trustgate
