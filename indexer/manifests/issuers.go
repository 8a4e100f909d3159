package manifests

import (
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"repute/manifest/agentjson/identity"
)

// issuersEvery is how long the registry's files are kept in memory: operators replace them as files, without a signal.
const issuersEvery = 10 * time.Minute

// issuers is the registry of issuers, read from its files. It is safe for concurrent use.
type issuers struct {
	files fs.FS // nil for none
	log   *slog.Logger

	mu       sync.Mutex
	read     time.Time
	registry *identity.Registry
}

// at returns the registry; nil without files that can be used. Files that cannot be read leave the ones before, which
// say nothing any more once they have expired.
func (i *issuers) at(now time.Time) *identity.Registry {
	if i.files == nil {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.read) < issuersEvery {
		return i.registry
	}
	i.read = now
	registry, err := identity.ReadRegistry(i.files, now)
	if err != nil {
		i.log.Warn("manifests: the registry of issuers cannot be used", "error", err)
		return i.registry
	}
	i.registry = registry
	return registry
}
