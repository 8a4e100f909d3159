package read

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/indexer/node"
	"repute/trust/source"
)

// fact is what is known of a contract at a session's block.
type fact struct {
	empty          bool        // it has no code
	implementation common.Hash // what its EIP-1967 slot holds
}

// implementationSlot is that of EIP-1967: keccak256("eip1967.proxy.implementation") - 1.
const implementationSlot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc"

// factsOf reads contracts, each once per session.
func (s *session) factsOf(ctx context.Context, contracts []common.Address) (map[common.Address]fact, error) {
	unread := slices.DeleteFunc(slices.Clone(contracts), func(a common.Address) bool {
		_, known := s.facts[a]
		return known
	})
	if len(unread) == 0 {
		return s.facts, nil
	}
	ask := func(ctx context.Context, n *node.Node) (out []fact, err error) {
		err = patiently(ctx, func() error {
			out, err = s.readFacts(ctx, n, unread)
			return err
		})
		return out, err
	}
	found, err := agreed(ctx, s, "the code of a contract", slices.Equal, ask)
	if err != nil {
		return nil, err
	}
	for i, a := range unread {
		s.facts[a] = found[i]
	}
	return s.facts, nil
}

// readFacts reads the codes of contracts in one request, and one slot of each.
func (s *session) readFacts(ctx context.Context, n *node.Node, contracts []common.Address) ([]fact, error) {
	codes, err := n.Codes(ctx, s.at, contracts)
	if err != nil {
		return nil, err
	}
	out := make([]fact, len(contracts))
	for i, a := range contracts {
		word, err := n.Storage(ctx, s.at, a, common.HexToHash(implementationSlot))
		if err != nil {
			return nil, err
		}
		out[i] = fact{len(codes[i]) == 0, word}
	}
	return out, nil
}

// checkContracts compares the contracts of the home with the declaration. The first implementations that are found
// without a fault are pinned in the reading.
func (j *job) checkContracts(ctx context.Context, before *source.State) error {
	names := slices.Sorted(maps.Keys(j.home.Contracts))
	addresses := make([]common.Address, len(names))
	for i, name := range names {
		addresses[i] = j.home.Contracts[name].Address
	}
	facts, err := j.session.factsOf(ctx, addresses)
	if err != nil {
		return err
	}
	found := map[string]common.Address{}
	for i, name := range names {
		f := facts[addresses[i]]
		if f.empty {
			return offError{fmt.Errorf("there is no contract %s at %s", name, addresses[i])}
		}
		var first *common.Address
		if before != nil {
			if pinned, known := before.Implementations[name]; known {
				first = &pinned
			}
		}
		now := common.BytesToAddress(f.implementation[:])
		if common.BytesToHash(now[:]) != f.implementation || !j.home.Contracts[name].Accepts(now, first) {
			return offError{fmt.Errorf("contract %s at %s has another implementation than the one that is pinned: %s", name,
				addresses[i], now)}
		}
		found[name] = now
	}
	j.out.Implementations = found
	return nil
}

// delegation begins the code of an address that is a key and delegates to a contract (EIP-7702).
func delegation() []byte { return []byte{0xef, 0x01, 0x00} }

// leaveContracts takes out of what was found on another chain the addresses that have code on either chain: there the
// same address can belong to somebody else.
func (j *job) leaveContracts(ctx context.Context) error {
	if j.local == nil {
		return nil
	}
	for _, s := range []*session{j.session, j.local} {
		keys, err := s.keys(ctx, j.asked)
		if err != nil {
			return err
		}
		left := j.asked[:0]
		for i, q := range j.asked {
			if keys[i] {
				left = append(left, q)
			}
		}
		j.asked = left
	}
	return nil
}

// keys tells which addresses have no code of their own.
func (s *session) keys(ctx context.Context, asked []*source.Inquiry) ([]bool, error) {
	addresses := make([]common.Address, len(asked))
	for i, q := range asked {
		addresses[i] = q.Rater
	}
	return agreed(ctx, s, "the code of a rater", slices.Equal, func(ctx context.Context, n *node.Node) ([]bool, error) {
		var codes [][]byte
		err := patiently(ctx, func() (err error) {
			codes, err = n.Codes(ctx, s.at, addresses)
			return err
		})
		out := make([]bool, len(codes))
		for i, c := range codes {
			out[i] = len(c) == 0 || bytes.HasPrefix(c, delegation())
		}
		return out, err
	})
}
