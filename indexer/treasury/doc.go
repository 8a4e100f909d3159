// Package treasury follows the events of OpenFiTreasury contracts: the transfers that agents made, and the
// limits that the owner set. Each treasury has its own cursor, because it may be on a chain that is not
// indexed, and may be configured long after its deployment. A Follower stores final blocks in ranges,
// newer ones with all headers, and rewinds blocks that a reorganization replaced.
package treasury
