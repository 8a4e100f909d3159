package jsonrpc

import (
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// IsRevert reports whether a call failed because the contract reverted, and not because of the
// node.
func IsRevert(err error) bool {
	const code = 3
	var coded rpc.Error
	return errors.As(err, &coded) && coded.ErrorCode() == code ||
		strings.Contains(strings.ToLower(err.Error()), "execution reverted")
}

// LacksState reports whether an error is the message of a node that has dropped the state of a
// block.
func LacksState(err error) bool {
	if fault := Diagnose(err).Fault; fault == FaultPruned || fault == FaultBehind {
		return true
	}
	s := strings.ToLower(err.Error())
	for _, words := range []string{"missing trie node", "header not found", "state is pruned", "pruned",
		"state not available",
		"state is not available", "historical state", "state histories", "no state available", "proof window",
		"archive",
		"block is out of range", "old data not available", "state recreation", "unknown block", "block not found"} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}
