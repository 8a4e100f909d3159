// Package agent is a runtime for agents by the Agent Runtime Specification 1.0: it runs capabilities
// for clients, is paid by x402, and signs what it answers. Section numbers in comments are those of
// the specification.
//
// Router takes a Request through the eight steps of section 7.3 and gives a Response: input against
// the schema, policy, payment, handler, output against the schema, signature, record, answer. It
// knows no transport: package serve is HTTP over it.
//
// A payment is claimed by a row in Postgres before its work begins, and every step of the work is
// stored before the next one. When a process is killed, another one takes over its payments and continues
// after the last stored step. The same payment MUST NOT be charged twice, no answer is given before its
// payment is settled, and a handler is called once for a payment unless its capability says that it
// may be called again.
package agent
