package rpctest

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/eventlog"
)

// Registries are the addresses whose logs are built.
type Registries = eventlog.Registries

// Gateway is a feedback gateway whose logs are built.
var Gateway = eventlog.Gateway

// Token makes a token id of a small number.
func Token(id uint64) repute.TokenID { return eventlog.Token(id) }

// Account returns the n-th of a fixed series of addresses.
func Account(n uint64) common.Address { return eventlog.Account(n) }

// must panics: what fails here is a mistake of a test, in a goroutine that must not call t.Fatal.
func must(err error) {
	if err != nil {
		panic("rpctest: " + err.Error())
	}
}
