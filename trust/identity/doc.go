// Package identity checks who an agent is by what its files say: whether its registration file was read, whether that
// names the wallet and the operator that the chain names, and which of its hosts are proven.
//
// Of makes the checks that gates ask for. It reads what the index stored and makes no request, and its result is part
// of the manifest of a score's evidence, because a file may say something else tomorrow. A host that cannot be proven,
// such as an address instead of a name, is counted and not passed over: an agent could otherwise avoid the check by
// naming such hosts alone.
//
// OpenFi makes the trust snapshot of OpenFi, five yes-or-no checks with fixed weights. It is shown next to a score and
// does not enter it.
package identity
