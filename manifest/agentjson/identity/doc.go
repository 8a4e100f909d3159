// Package identity has the cryptography of agent.json: Ed25519 keys in the forms that are in use, DID documents of
// did:web, did:key, signatures over canonical JSON (RFC 8785), and the files of the Open Agent Trust Registry. It is
// pure: callers fetch the documents, and the time is a parameter.
package identity
