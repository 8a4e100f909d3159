package answers

import (
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// MaxClients is how many addresses one parameter may name.
const MaxClients = 1000

// ParseAgent parses an agent id in any of its forms, and sets its chain to chain unless that is "". An id with another
// chain is refused. The chain may still be 0 in the result: Index.Resolve sets it where one chain is indexed or a
// default is configured.
func ParseAgent(id, chain string) (repute.AgentRef, error) {
	ref, err := repute.ParseAgentRef(id)
	if err != nil || chain == "" {
		return ref, err
	}
	chainID, err := repute.ParseChainID(chain)
	if err != nil {
		return repute.AgentRef{}, err
	}
	if ref.ChainID != 0 && ref.ChainID != chainID {
		return repute.AgentRef{}, repute.Invalid("chainId", "the id names another chain",
			"give the chain once, or twice the same")
	}
	ref.ChainID = chainID
	return ref, nil
}

// ParseAt reads latest (the default), safe, finalized or a block number. A block is bounded by int64, which is what the
// database has. It is not compared with the head here.
func ParseAt(s string) (repute.At, error) {
	switch f := repute.Finality(s); f {
	case "":
		return repute.At{Finality: repute.Latest}, nil
	case repute.Latest, repute.Safe, repute.Finalized:
		return repute.At{Finality: f}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || s[0] == '+' {
		return repute.At{}, repute.Invalid("at", "not a view of the chain", "latest, safe, finalized or a block number")
	}
	return repute.At{Block: uint64(n)}, nil
}

// ParseAddresses reads addresses divided by commas; nil for "". Empty elements are errors, so that a comma too many
// does not pass for fewer clients. An address that is given twice stays twice, because summaries of the registry count
// it so.
func ParseAddresses(field, s string) ([]common.Address, error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > MaxClients {
		return nil, repute.Invalid(field, "too many addresses", "at most "+strconv.Itoa(MaxClients))
	}
	out := make([]common.Address, 0, len(parts))
	for _, p := range parts {
		a, err := repute.ParseAddress(field, strings.TrimSpace(p))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// parseOptionalAddress reads an address; nil for "".
func parseOptionalAddress(field, s string) (*common.Address, error) {
	if s == "" {
		return nil, nil
	}
	a, err := repute.ParseAddress(field, s)
	if err != nil {
		return nil, err
	}
	return &a, nil
}

// checkWallet refuses the zero address, which is how registries write "none".
func checkWallet(a *common.Address) error {
	if a != nil && *a == (common.Address{}) {
		return repute.Invalid("wallet", "the zero address is nobody's wallet", "the address of a wallet")
	}
	return nil
}

// ParseChains reads chain ids divided by commas; nil for "". Chains that are not indexed are no error: nothing is found
// on them.
func ParseChains(s string) ([]uint64, error) {
	if s == "" {
		return nil, nil
	}
	var out []uint64
	for _, p := range strings.Split(s, ",") {
		id, err := repute.ParseChainID(strings.TrimSpace(p))
		if err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, nil
}
