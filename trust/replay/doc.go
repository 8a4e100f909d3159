// Package replay names and restores the inputs that a score was computed from.
//
// A score follows from events, parameters, roots and a few other inputs. The others are listed
// in its Manifest: related agents, payments, checks of identity, the list of validation
// contracts. The store keeps a manifest by the sha256 of its canonical bytes. ManifestOf makes
// it from evidence, and Apply puts its contents back into evidence, which is how a score is
// computed again years later. An input that is no longer stored is reported as a *PrunedError.
//
// Sets of roots, links and validation contracts have a canonical form too: one JSON object
// without spaces, sorted, each address once. EncodeRoots and its siblings write it, DecodeRoots
// and its siblings read it, and HashInput names it.
package replay
