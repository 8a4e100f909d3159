package rpctest

import (
	"slices"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/core/types"

	"repute/internal/chainserver"
)

// SetChainID makes the node answer another chain id.
func (c *Chain) SetChainID(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
}

// ServeHead makes the node lag: it knows nothing above n. ServeAll ends it.
func (c *Chain) ServeHead(n uint64) { c.lag(&n) }

// ServeAll ends ServeHead.
func (c *Chain) ServeAll() { c.lag(nil) }

// lag sets the newest block that the node knows, nil for all.
func (c *Chain) lag(n *uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = n
}

// On limits a rule to one method.
func On(method string, fn Rule) Rule {
	return func(call Call) *Answer {
		if call.Method != method {
			return nil
		}
		return fn(call)
	}
}

// Times limits a rule to its first n answers; after them it is not asked again. Calls that the rule leaves alone do not
// count.
func Times(n int64, fn Rule) Rule {
	var used atomic.Int64
	return func(call Call) *Answer {
		if used.Load() >= n {
			return nil
		}
		a := fn(call)
		if a != nil && used.Add(1) > n {
			return nil
		}
		return a
	}
}

// Always answers every call it sees with a.
func Always(a Answer) Rule { return func(Call) *Answer { return &a } }

// LimitRange refuses eth_getLogs over more than max blocks with a provider's own words.
func LimitRange(max uint64, refusal Error) Rule { return chainserver.LimitRange(max, refusal) }

// Range returns the block range of an eth_getLogs call.
func Range(call Call) (from, to uint64, ok bool) { return chainserver.Range(call) }

// Drop is a MapLogs function that leaves out matching logs.
func Drop(match func(types.Log) bool) func([]types.Log) []types.Log {
	return func(logs []types.Log) []types.Log { return slices.DeleteFunc(logs, match) }
}

// Duplicate is a MapLogs function that sends matching logs twice.
func Duplicate(match func(types.Log) bool) func([]types.Log) []types.Log {
	return func(logs []types.Log) []types.Log {
		out := []types.Log{}
		for _, l := range logs {
			out = append(out, l)
			if match(l) {
				out = append(out, l)
			}
		}
		return out
	}
}

// Corrupt is a MapLogs function that changes matching logs.
func Corrupt(match func(types.Log) bool, change func(*types.Log)) func([]types.Log) []types.Log {
	return func(logs []types.Log) []types.Log {
		for i := range logs {
			if match(logs[i]) {
				change(&logs[i])
			}
		}
		return logs
	}
}

// Every matches all logs.
func Every(types.Log) bool { return true }

// AtBlock matches the logs of one block.
func AtBlock(n uint64) func(types.Log) bool {
	return func(l types.Log) bool { return l.BlockNumber == n }
}
