// Package identity has the cryptography of agent.json: Ed25519 keys in the forms that are in use, DID documents of
// did:web, did:key, signatures over canonical JSON (RFC 8785), and the files of the Open Agent Trust Registry.
//
// It is pure: callers fetch the documents, and the time is a parameter. Everything that it reads comes from strangers.
// Texts are bounded before they are decoded, JSON that two readers could read differently has no canonical form and
// proves nothing, and keys of small order, under which any message has a valid signature, are no keys.
//
// A DID document proves a key for a host only as did:web of exactly that host. DIDDocument.Find accepts several ways to
// write a key, because published documents differ; the Form says which one it was. Nothing that a document refers to is
// followed.
//
// A Registry is made of files whose signatures were verified against the root keys that the operator gave. Check then
// says whether it knows an issuer as the service at an origin, with a key that is neither revoked nor expired.
package identity
