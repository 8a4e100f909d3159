package contracts

import (
	_ "embed" // deployments.json
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

//go:embed deployments.json
var deploymentsJSON []byte

// Deployment is a public network with the three registries.
type Deployment struct {
	Name       string         `json:"name"` // lower case, unique
	ChainID    uint64         `json:"chainId"`
	Testnet    bool           `json:"testnet"`
	Identity   common.Address `json:"identity"`
	Reputation common.Address `json:"reputation"`
	// Validation is the address the registry's authors reserved. Many
	// validations live in contracts of others.
	Validation common.Address `json:"validation"`
	// StartBlock is where indexing begins: the identity registry's deployment,
	// or the lowest claim where sources disagree. Too low costs time, too high
	// loses agents.
	StartBlock uint64 `json:"startBlock"`
	// StartVerified: code is known to be absent before StartBlock and present at
	// it.
	StartVerified bool   `json:"startVerified"`
	Note          string `json:"note"` // where StartBlock comes from
}

// Chain returns the deployment as a chain to follow, its own validation registry
// the only trusted one.
func (d Deployment) Chain() repute.Chain {
	return repute.Chain{
		ID:          d.ChainID,
		Name:        d.Name,
		Identity:    d.Identity,
		Reputation:  d.Reputation,
		Validations: []common.Address{d.Validation},
		StartBlock:  d.StartBlock,
	}
}

// Deployments lists the known networks, mainnets first, each group by chain id.
// The caller may change the slice. It is parsed at each call: keep it where it is
// asked for often.
func Deployments() []Deployment {
	var list []Deployment
	// The file is part of the program and read by its tests: it parses.
	_ = json.Unmarshal(deploymentsJSON, &list)
	return list
}

// FindDeployment returns the network of that name, in any case, or of that decimal
// chain id. The error is repute.ErrNotFound.
func FindDeployment(nameOrID string) (Deployment, error) {
	for _, d := range Deployments() {
		if strings.EqualFold(d.Name, nameOrID) || strconv.FormatUint(d.ChainID, 10) == nameOrID {
			return d, nil
		}
	}
	return Deployment{}, fmt.Errorf("network %q: %w", nameOrID, repute.ErrNotFound)
}
