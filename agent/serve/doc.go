// Package serve is the HTTP surface of an agent (section 4 of the Agent Runtime Specification): it turns requests into
// those of an agent.Router and signs every answer, also errors.
//
// New returns one handler with the routes of the specification (capabilities, health, receipts), the documents below
// /.well-known, metrics, an OpenAPI document, and the other surfaces that Options.Mounts names. All are under the
// limits of package httpapi for each caller: rate, size of bodies, time.
//
// The signature is over what a client receives: the hash of the body's canonical JSON, or of its bytes where it is no
// JSON. Answers are therefore kept until they are signed, and bodies are not compressed here. One answer has no
// signature: 429 to a caller that asks too often, because that caller would decide how many signatures are made.
// Mounted surfaces sign what they answer by themselves.
//
// Errors are RFC 9457 problem details with the members error and message, which clients of the specification read.
// Receipts show amounts and signatures to the owner and to the client concerned, who sign the request; others see that
// there was an execution.
package serve
