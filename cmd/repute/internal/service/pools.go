package service

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"repute/indexer/node"
)

// pools are the endpoints of a process: one pool per chain and list of URLs, which all loops share,
// so that a limit or a failure that one loop meets counts for all of them. The zero value has none.
type pools struct {
	mu      sync.Mutex
	byURLs  map[string]*node.Pool             // by chain id and list of URLs
	stop    map[*node.Pool]context.CancelFunc // of pools that run
	running sync.WaitGroup
}

// pool returns the pool of a chain's endpoints, whose calls are counted under its id. Close closes it.
func (s *Service) pool(chainID uint64, urls []string) (*node.Pool, error) {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	key := fmt.Sprint(chainID, urls)
	if p := s.pools.byURLs[key]; p != nil {
		return p, nil
	}
	o := node.PoolOptions{ChainID: chainID, Metrics: s.rpc, Log: s.log}
	if chains, err := s.Config.Reachable(); err == nil && slices.Equal(chains[chainID], urls) {
		o.DB = s.db // the health of the other lists would replace that of the chain's own
	}
	p, err := node.OpenPool(urls, node.Options{}, o)
	if err != nil {
		return nil, err
	}
	if s.pools.byURLs == nil {
		s.pools.byURLs, s.pools.stop = map[string]*node.Pool{}, map[*node.Pool]context.CancelFunc{}
	}
	s.pools.byURLs[key] = p
	return p, nil
}

// runningPool is pool for a loop that runs until ctx ends: the pool also probes idle endpoints and
// stores their health until then.
func (s *Service) runningPool(ctx context.Context, chainID uint64, urls []string) (*node.Pool, error) {
	p, err := s.pool(chainID, urls)
	if err != nil {
		return nil, err
	}
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	if s.pools.stop[p] == nil {
		ctx, stop := context.WithCancel(ctx)
		s.pools.stop[p] = stop
		s.pools.running.Go(func() { _ = p.Run(ctx) }) // ends with ctx, without an error
	}
	return p, nil
}

// Close ends the connections to endpoints. Run and ServeStdio do so when they return.
func (s *Service) Close() {
	s.pools.mu.Lock()
	defer s.pools.mu.Unlock()
	for _, stop := range s.pools.stop {
		stop()
	}
	s.pools.running.Wait()
	for _, p := range s.pools.byURLs {
		p.Close()
	}
	s.pools.byURLs, s.pools.stop = nil, nil
}
