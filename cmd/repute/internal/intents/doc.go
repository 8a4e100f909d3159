// Package intents has the commands that find intents of agent.json manifests by their meaning, and act on them.
//
// `repute intent find` compares a text with the intents of files and domains on this computer, or asks an index.
// `repute intent run` fetches the manifest of one domain, checks the arguments against it, and calls the intent's
// endpoint. It pays for the answer only where --max is given, by the rules of package payments, and never more than the
// manifest's price.
//
// Everything that a manifest says is a stranger's text. It is printed with what acts on a terminal taken out, an intent
// without an endpoint is printed and not acted on, and only the domain itself is called, without redirects.
package intents
