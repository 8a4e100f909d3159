// Package explain answers questions about the scores that package trust/engine stored: a Reader explains them, replays
// them from the stored inputs byte by byte, and scores agents by the roots of the caller.
//
// An explanation has the contribution of each opinion, the ratings that do not count with the reasons, and what the
// score would be without some raters. A replay fails with a *replay.PrunedError when something that the score follows
// from is no longer stored, and with a *DiffersError when the stored numbers are not those of the stored result.
package explain
