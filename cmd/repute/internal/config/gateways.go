package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// gatewayWord begins the entry of a feedback gateway in the list of a chain's contracts.
const gatewayWord = "gateway"

// maxGateways bounds the list of one chain: every question for logs names all of them.
const maxGateways = 20

// namesGateway reports whether an entry is of a feedback gateway.
func namesGateway(entry string) bool {
	return entry == gatewayWord || strings.HasPrefix(entry, gatewayWord+" ")
}

// gatewayText writes a gateway as gatewayOf reads it.
func gatewayText(g repute.WatchedContract) string {
	return fmt.Sprintf("%s %s %d", gatewayWord, g.Address.Hex(), g.From)
}

// gatewaysOf reads the feedback gateways of a chain.
func gatewaysOf(entries []string, chain repute.Chain) (list []repute.WatchedContract, err error) {
	for _, entry := range entries {
		g, err := gatewayOf(entry)
		if err != nil {
			return nil, err
		}
		isListed := func(h repute.WatchedContract) bool { return h.Address == g.Address }
		switch {
		case slices.ContainsFunc(list, isListed):
			return nil, repute.Invalid("validations", fmt.Sprintf("gateway %s stands twice", g.Address.Hex()),
				"keep one")
		case g.Address == chain.Identity || g.Address == chain.Reputation ||
			slices.Contains(chain.Validations, g.Address):
			return nil, repute.Invalid("validations", fmt.Sprintf("gateway %s is another contract of the chain",
				g.Address.Hex()), "the address of the gateway")
		}
		list = append(list, g)
	}
	if len(list) > maxGateways {
		return nil, repute.Invalid("validations", fmt.Sprintf("%d gateways", len(list)),
			fmt.Sprintf("at most %d", maxGateways))
	}
	return list, nil
}

// gatewayOf reads "gateway ADDRESS BLOCK".
func gatewayOf(entry string) (g repute.WatchedContract, err error) {
	const form = `the word gateway, the contract's address and a block at or before its deployment, e.g. "gateway 0x… 41000000"`
	parts := strings.Fields(entry)
	if len(parts) != 3 {
		return g, repute.Invalid("validations", fmt.Sprintf("%.80q has not three parts", entry), form)
	}
	if g.Address, err = repute.ParseAddress("validations", parts[1]); err != nil {
		return g, err
	}
	if g.Address == (common.Address{}) {
		return g, repute.Invalid("validations", "the gateway is the zero address", form)
	}
	if g.From, err = strconv.ParseUint(parts[2], 10, 63); err != nil {
		return g, repute.Invalid("validations", fmt.Sprintf("%.30q is no block number", parts[2]), form)
	}
	return g, nil
}
