package repute

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// Registration is an agent's registration file (ERC-8004 "Agent URI and
// registration file"). Strings are valid UTF-8 without NUL and bounded.
type Registration struct {
	Type           string
	Name           string
	Description    string
	Image          string
	Services       []Service
	X402           *bool // accepts payments by x402; nil when absent
	Active         *bool // nil when absent
	Registrations  []RegistrationLink
	SupportedTrust []string
	Extra          map[string]json.RawMessage // unknown members, as written
	// Partial reports that members were omitted because many agents were read together.
	Partial bool
}

// Service is one endpoint of an agent.
type Service struct {
	Name     string // as written: MCP, A2A, web, OASF, …
	Endpoint string
	Version  string
	Skills   []string // of OASF, or of A2A (a2aSkills)
	Domains  []string // of OASF: fields of work, not host names
	// Tools, Prompts and Resources are of MCP (mcpTools, …).
	Tools     []string
	Prompts   []string
	Resources []string
	Extra     map[string]json.RawMessage
}

// RegistrationLink is a registration file's claim to be an agent's file.
type RegistrationLink struct {
	TokenID  *TokenID // nil when null or unreadable
	Registry string   // eip155:{chain}:{address}, as written
}

// Account is an account of one EVM chain (CAIP-10, eip155).
type Account struct {
	ChainID uint64
	Address common.Address
}

// ParseAccount reads eip155:{chain}:{address}. The error is ErrInvalid and names the
// part that is wrong.
func ParseAccount(s string) (Account, error) {
	namespace, rest, _ := strings.Cut(s, ":")
	chain, address, ok := strings.Cut(rest, ":")
	if namespace != "eip155" || !ok {
		return Account{}, Invalid("account", "not an EVM account", "eip155:{chainId}:{address}")
	}
	id, err := ParseChainID(chain)
	if err != nil {
		return Account{}, err
	}
	a, err := ParseAddress("account", address)
	return Account{ChainID: id, Address: a}, err
}

// maxCollected bounds the lists that are collected over all services.
const maxCollected = 256

// Skills returns the skills of all services as written, each once, at most 256.
func (r Registration) Skills() []string {
	return collect(r.Services, func(s Service) []string { return s.Skills })
}

// Domains returns the OASF domains of all services as written, each once, at most 256.
func (r Registration) Domains() []string {
	return collect(r.Services, func(s Service) []string { return s.Domains })
}

// Wallets returns the EVM accounts in the endpoints of services, each once, at most 256. The file
// only claims them; the chain proves only agentWallet.
func (r Registration) Wallets() []Account {
	return collect(r.Services, func(s Service) []Account {
		if a, err := ParseAccount(s.Endpoint); err == nil {
			return []Account{a}
		}
		return nil
	})
}

// collect returns a list over all services without repetitions.
func collect[T comparable](services []Service, of func(Service) []T) []T {
	var out []T
	seen := map[T]bool{}
	for _, s := range services {
		for _, v := range of(s) {
			if !seen[v] && len(out) < maxCollected {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	return slices.Clip(out)
}
