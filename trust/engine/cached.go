package engine

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust"
	"repute/trust/replay"
)

// evaluations caches parts of scores that are the same for most agents of a run. It MUST NOT be used by two goroutines
// at once.
type evaluations struct {
	bare  map[bareKey]bareManifest
	facts map[factKey]common.Hash
}

// bareKey has what a manifest follows from when it names no file, related agent or payment, and bareManifest the
// manifest. isChecked says that the agent's identity was looked at.
type (
	bareKey struct {
		validations                         common.Hash
		wallet                              common.Address
		isChecked, resolves, declares, gone bool
		domains, proven                     int
	}
	bareManifest struct {
		manifest []byte
		named    common.Hash
	}
)

// manifestOf returns the encoded manifest of evidence and its hash.
func (c *evaluations) manifestOf(e *trust.Evidence) (manifest []byte, named common.Hash) {
	m := replay.ManifestOf(e)
	i := m.Identity
	if len(m.Related) > 0 || m.Paid != nil || i != nil && (i.File != nil || len(i.Proofs) > 0) {
		manifest = m.Encode()
		return manifest, replay.HashInput(manifest)
	}
	key := bareKey{validations: e.Validations}
	if i != nil {
		key = bareKey{e.Validations, i.Wallet, true, i.Resolves, i.Declares, i.Gone, i.Domains, i.Proven}
	}
	one, known := c.bare[key]
	if !known {
		if c.bare == nil || len(c.bare) >= maxFacts {
			c.bare = map[bareKey]bareManifest{}
		}
		one.manifest = m.Encode()
		one.named = replay.HashInput(one.manifest)
		c.bare[key] = one
	}
	return one.manifest, one.named
}

// factKey has the fields of a result that factsOf hashes, without a guard. passed has a bit for each gate.
type factKey struct {
	status                             trust.Status
	tier, rows, excluded, pro, against int
	passed                             uint64
}

// maxFacts bounds the entries of each map of evaluations.
const maxFacts = 100_000

// factsOf returns the hash factsOf of a result.
func (c *evaluations) factsOf(r *trust.Result) common.Hash {
	if r.Guard != nil || len(r.Gates) > 64 {
		return factsOf(r)
	}
	key := factKey{status: r.Status, tier: r.Tier, rows: r.Rows, excluded: r.Excluded, pro: r.PathsFor,
		against: r.PathsAgainst}
	for i, g := range r.Gates {
		if g.Passed {
			key.passed |= 1 << i
		}
	}
	hash, known := c.facts[key]
	if known {
		return hash
	}
	if c.facts == nil || len(c.facts) >= maxFacts {
		c.facts = map[factKey]common.Hash{}
	}
	hash = factsOf(r)
	c.facts[key] = hash
	return hash
}

// factsOf returns a hash of the fields of a result that do not change gradually with the age of ratings. Scores with
// equal facts and nearly equal numbers are not stored again.
func factsOf(r *trust.Result) common.Hash {
	passed := []string{}
	for _, g := range r.Gates {
		if g.Passed {
			passed = append(passed, g.ID)
		}
	}
	b, _ := json.Marshal(struct { // of strings and numbers: it cannot fail
		Status                             trust.Status
		Tier, Rows, Excluded, For, Against int
		Passed                             []string
		Guard                              *trust.GuardView
	}{r.Status, r.Tier, r.Rows, r.Excluded, r.PathsFor, r.PathsAgainst, passed, r.Guard})
	return sha256.Sum256(b)
}
