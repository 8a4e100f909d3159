// Package manifestdb stores the agent.json manifests that domains publish: the queue of domains to ask, what they
// answered last, the intents of usable manifests, and how manifests belong to agents.
//
// Plan adds the domains that files of agents name, and Import those that an operator lists. ClaimDue gives due ones to
// a worker, with the claim of their hosts that the documents' queue (package docdb) has too, so that both together are
// polite to a host. Save or Release ends a claim. A claim expires, so that the domain of a process that died is asked
// again; what it learned is not stored any more once another worker has the domain. Save writes the outcome, the
// intents where they may differ, and the change feed in one transaction.
//
// A domain keeps its manifest while it does not answer, up to a week. After that, and when the domain says that there
// is none, it proves nothing and its intents are removed.
//
// That a manifest belongs to an agent is computed when it is read (Link): the domain's agent-registration.json names
// the agent, which proves it; the manifest pays the agent's wallet, which proves it only where the agent's file names
// the domain too; or the agent's file names the domain, which proves nothing about the domain.
//
// List, Read and Intents answer questions. Intents finds intents by words; package api/finder keeps an index of their
// meaning in memory, which it fills from IntentsOf and keeps in step by ChangedIntents, and asks Allowed and
// IntentsByKey for what may be shown. OffersAfter and OffersOf read what registration files and agent cards offer for
// the same index.
//
// Reads for answers leave out what the operator denies; those that fill the index do not, which is why it asks. Prices
// are decimals in dollars, as text, and never floating point.
//
// Tables: manifests, manifest_intents.
package manifestdb
