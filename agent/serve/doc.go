// Package serve is the HTTP surface of an agent (section 4 of the Agent Runtime Specification): it
// turns requests into those of an agent.Router and signs every answer, also errors.
//
// The signature is over what a client receives: the hash of the body's canonical JSON, or of its
// bytes where it is no JSON. Bodies are therefore not compressed here. Errors are RFC 9457 problem
// details with the members error and message, which clients of the specification read.
package serve
