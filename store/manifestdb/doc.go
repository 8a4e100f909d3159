// Package manifestdb stores the agent.json manifests that domains publish: the queue of domains to ask, what they
// answered last, the intents of usable manifests, and how manifests belong to agents.
//
// Plan and Import add domains. ClaimDue gives due ones to a worker, with the claim of their hosts that the documents'
// queue has too, so that both together are polite to a host. Save ends a claim with what was learned, and writes the
// change feed. List, Read and Intents answer questions.
package manifestdb
