// Package agent is a runtime for agents by the Agent Runtime Specification 1.0: it runs capabilities for clients, is
// paid by x402, and signs what it answers. Section numbers in comments are those of the specification.
//
// # Requests
//
// A Router takes a Request through the eight steps of section 7.3 and gives a Response: input against the schema,
// policy, payment, handler, output against the schema, signature, record, answer. It knows no transport. The packages
// below it are transports (serve for HTTP, and toolserver, a2aserver and remoteserver with envelope between them),
// handlers (handler, llm/oafagent) and what the router asks: Governor is the policy, x402.Facilitator moves money, and
// signed.Signer has the key.
//
// The router admits as many requests at once as its mode allows. Others wait for a while, in their order, and are
// refused then. A payer who is owed an answer is admitted in any mode, for that answer alone.
//
// # Payments
//
// A payment is claimed by a row in Postgres before its work begins, and every step of the work is stored before the
// next one. A claim is held for Options.Lease and renewed until the work ends. When a process is killed, another one
// that gets the same payment again takes over its claim and continues after the last stored step. What a payment pays
// for (terms) is stored with its claim, so that a changed configuration does not change what was agreed.
//
// The same payment MUST NOT be charged twice, no answer is given before its payment is settled, and a handler is called
// once for a payment unless its capability says that it may be called again. Work for a payment does not end with its
// client: the client sends the same payment again and gets the stored answer. Where it is not known how a settlement
// ended, the client is told to send the same payment again and never another one.
//
// A Problem is an answer that is no success. Its texts are shown to clients: what handlers, facilitators and nodes say
// goes to the log alone.
//
// # Upkeep
//
// Upkeep is what a runtime does beside answering (sections 3 and 9). It compares the agent on the chain with the key,
// follows the agent's events, reads its own score, sets the mode that the policy derives from the score, and signs
// heartbeats. Start refuses an agent whose key is not its owner's or wallet's, and Run ends when the chain says so
// several times. All processes of an agent do all of it: what they store is the same, and stored once.
package agent
