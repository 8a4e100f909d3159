// Package agentjson reads agent.json, the manifest in which a web service tells agents what it can do (intents), what
// that costs, how it is paid and who it is; versions 1.0 to 1.4. It is pure: the same bytes and the same evidence give
// the same answer.
//
// Parse turns bytes into a Manifest and the list of its problems. It has no error: a document that cannot be read gives
// an empty manifest and a problem of severity error. Parse accepts more than a publisher should write; the profile
// Strict judges as a publisher wants to be judged. Numbers are exact decimals.
//
// Declared returns the tier that a manifest claims, Verify the tier that is proven: by the host that served the
// manifest, by the DID document of its origin, and by signatures. Fetches returns the URLs of the documents that Verify
// needs; the caller fetches them. Terms resolves how an intent is paid. Package measure compares commitments with
// measurements. New, SignCommitments and package identity make manifests, keys and DID documents.
package agentjson
