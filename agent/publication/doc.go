// Package publication makes the documents by which an agent says on its own domain what it does and what that costs:
// agent.json, and the DID document that proves its key. Both follow from the capabilities that are served, so that they
// cannot say something else. New is called once, at the start; package serve answers with the bytes.
//
// A manifest speaks for its own host alone: without a public domain nothing is published. Package agentjson judges the
// manifest as readers will, in its strict profile, and one with an error is not published. Commitments are signed with
// the key, and need one.
//
// A Draft is a manifest for a service without this runtime, which a person completes.
//
// What the manifest has no member for is said in words or left to the service's answer: a price in another token than
// USDC, promises, and what an input schema demands beyond the types of its properties.
package publication
