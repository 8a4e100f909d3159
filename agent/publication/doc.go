// Package publication makes the documents by which an agent says on its own domain what it does and what that costs:
// agent.json, and the DID document that proves its key. Both follow from the capabilities that are served, so that they
// cannot say something else. A manifest that package agentjson finds an error in is not published.
package publication
