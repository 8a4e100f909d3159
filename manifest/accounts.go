package manifest

import (
	"strings"

	"repute"
)

// Accounts and chains of any namespace are legal in these files: an agent on an EVM
// chain may be registered on Solana as well. Only those of eip155 can be checked
// further.

// isChainName reports whether s has the form of a CAIP-2 chain id, namespace:reference.
func isChainName(s string) bool {
	namespace, reference, ok := strings.Cut(s, ":")
	return ok && isWord(namespace, 3, 8, "-") && strings.ToLower(namespace) == namespace &&
		isWord(reference, 1, 32, "-_")
}

// isForeignAccount reports whether s has the form of a CAIP-10 account of another
// namespace than eip155: namespace:reference:address.
func isForeignAccount(s string) bool {
	i := strings.LastIndexByte(s, ':')
	return i > 0 && !strings.HasPrefix(s, "eip155:") && isChainName(s[:i]) && isForeignName(s[i+1:])
}

// isForeignName reports whether s has the form of an address, and so also of a token or
// transaction id, of a namespace that is not known further (CAIP-10 account_address).
func isForeignName(s string) bool { return isWord(s, 1, 128, "-.%") }

// isWord reports whether s has least to most characters, each an ASCII letter, a digit
// or one of also.
func isWord(s string, least, most int, also string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return len(s) >= least && len(s) <= most && strings.Trim(s, plain+also) == ""
}

// checksum reports an EVM address, alone or at the end of an account, whose capitals
// are no EIP-55 checksum. Other forms are not its business.
func (r *reader) checksum(s, path string) {
	address := s[strings.LastIndexByte(s, ':')+1:]
	if isAddress(strings.ToLower(address)) && !isAddress(address) {
		r.add(CodeChecksum, path, "%.80q has a wrong EIP-55 checksum", address)
	}
}

// isAddress reports whether s is an EVM address in lower case or with its checksum.
func isAddress(s string) bool {
	_, err := repute.ParseAddress("", s)
	return err == nil
}
