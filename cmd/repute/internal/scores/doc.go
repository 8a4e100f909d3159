// Package scores has the commands about trust: repute roots and sources, which say whom and what scores trust, repute
// trust coverage, which says how much of the feedback counts, and repute score, which explains scores and
// computes them again.
package scores
