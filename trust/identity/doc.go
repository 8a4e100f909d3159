// Package identity checks who an agent is by what its files say: whether its registration file was read, whether that
// names the wallet and the operator that the chain names, and which of its hosts are proven.
//
// Of makes the checks that gates ask for. OpenFi makes the trust snapshot of OpenFi, which is shown next to a score and
// does not enter it.
package identity
