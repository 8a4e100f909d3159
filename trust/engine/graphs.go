package engine

import "sync"

// Graphs are the graphs and weights that engines of a process have in memory, for the readers of the same process,
// which would otherwise read the same ratings a second time. It is safe for concurrent use; the zero value is ready for
// use.
type Graphs struct {
	mu sync.RWMutex
	of map[uint64]*Basis // of the newest run by chain
}

// Set replaces the basis of a chain. A nil Graphs keeps none.
func (g *Graphs) Set(b *Basis) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[uint64]*Basis{}
	}
	g.of[b.Run.ChainID] = b
}

// Get returns the basis of a run, nil when it is not in memory.
func (g *Graphs) Get(chain, run uint64) *Basis {
	if g == nil {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	if b := g.of[chain]; b != nil && b.Run.Run == run {
		return b
	}
	return nil
}
