// Package agentjson reads agent.json, the manifest in which a web service tells agents what it can do (intents), what
// that costs, how it is paid and who it is; versions 1.0 to 1.4. It is pure: the same bytes and the same evidence give
// the same answer.
//
// Parse turns bytes into a Manifest and the list of its problems. It has no error: a document that cannot be read gives
// an empty manifest and a problem of severity error. Parse accepts more than a publisher should write; the profile
// Strict judges as a publisher wants to be judged. Numbers are exact decimals. The bytes come from strangers: depth,
// lists, texts, problems and what is kept of unknown members are bounded, and memory that a document needed is used
// again for the next one (room).
//
// Declared returns the tier that a manifest claims, Verify the tier that is proven: by the host that served the
// manifest, by the DID document of its origin, and by signatures. Fetches returns the URLs of the documents that Verify
// needs; the caller fetches them. A manifest speaks for its own host alone, and an endpoint elsewhere is never called.
//
// Terms resolves how an intent is paid, after all overrides, with the places that decided. Intent.CheckArguments judges
// the arguments of a call. Package measure compares commitments with measurements. SignCommitments signs a manifest;
// package identity makes keys and DID documents, and repute/agent/publication manifests.
//
// A change of what Parse returns for any document MUST raise Version, because stored parses are keyed by it.
package agentjson
