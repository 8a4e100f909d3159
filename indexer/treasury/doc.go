// Package treasury follows the events of an OpenFiTreasury: what agents moved, and what
// its owner set. Each treasury has a cursor of its own, so that it may be on any chain and
// be named at any time. Blocks that are replaced are rewound.
package treasury
