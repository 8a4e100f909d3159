// Package approval describes a transaction for the person who must approve of it: the decoded
// call, amounts with their symbols, events of the simulation, and the names of addresses. The
// answer is bound to the hash of this description.
package approval
