// Package contracts knows the three ERC-8004 registries from the chain's side, with
// feedback gateways and treasuries. It does no I/O and no arithmetic.
//
// Logs: Decode reads one log as an event, whatever its address, and Read does so where nothing
// may be left out: a log that cannot be read is then an event that says so. A Decoder knows the
// contracts that a chain follows and which events each of them emits. FollowedTopics is the
// filter of log queries. Topic and TopicsOf give the first topics of kinds of event. The
// decoders are written by hand, because a backfill reads millions of logs: they allocate
// nothing by a length that a log merely claims, and never panic.
//
// State: Views encodes calls of the registries' view functions and reads the answers. Each
// Question is the data to send with the function that reads what comes back.
//
// Calldata: ParseFunction reads the text of any function, Function.Decode takes a call of it
// apart, and a CallDecoder knows the functions of tokens, registries and treasuries by
// themselves. Only the ABI's one standard encoding is accepted, so that what a person is shown
// is all that the contract receives. DecodeCall and DecodeEvent do the same for a whole ABI.
//
// Deployments are the public networks on which the registries are known. The Solidity sources,
// artifacts and bindings lie beside this package; go generate makes the latter two.
package contracts

//go:generate go run ./internal/gen
