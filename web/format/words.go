package format

import (
	"maps"
	"strings"
)

// Tip says how a number is made.
type Tip struct{ Term, Text string }

// Tips are the explanations of numbers and terms, by the names that templates use.
func Tips() map[string]Tip {
	all := aboutScores()
	maps.Copy(all, aboutWork())
	return all
}

// aboutScores explains numbers of the index and its scores.
func aboutScores() map[string]Tip {
	return map[string]Tip{
		"score": {"score",
			"From -100 to 100: the mean opinion of raters, each by its weight. It is 0 while an agent is unrated. " +
				"Compare a minimum with low, not with the score."},
		"bounds": {"low and high",
			"One standard deviation below the score, and above it. Few or contradicting opinions make the two " +
				"lie far apart."},
		"confidence": {"confidence",
			"From 0 to 100 %: how much of the score is evidence, and not the starting value of an agent."},
		"status": {"status",
			"Rated: two or more independent raters with weight. Thin: one. Unrated: none, so that the score means " +
				"nothing."},
		"tier": {"tier",
			"From 0 to 4. An agent reaches a tier by its gates, its lower bound and the number of independent paths of " +
				"trust. 0 is unrated or to be rejected."},
		"gates": {"gate",
			"A named set of conditions on a score. Most gates admit agents that pass; reject and shutdown keep them out."},
		"agents": {"agents", "Tokens of the identity registries of all chains of this index."},
		"ratings": {"ratings",
			"Records of feedback that their clients have not revoked. Everybody can write one, so their number " +
				"proves nothing."},
		"reviewers": {"reviewers",
			"Different addresses with a rating that is not revoked. One person can have many addresses."},
		"rated": {"rated agents",
			"Agents that two or more independent raters with weight have rated, at the end of the newest epoch."},
		"new":  {"new in 24 h", "Agents that were registered in a block of the last 24 hours."},
		"head": {"head", "The newest block that an endpoint of the chain has reported."},
		"lag": {"lag",
			"How old the newest indexed block is: now minus the block's time. The blocks are those between it and the head."},
		"complete": {"completeness",
			"Whether events are known to be missing. Complete: every block is indexed, and proven to hold " +
				"exactly these events."},
		"gaps": {"gaps", "Events that the chain has and the index lacks. They are searched for until they are found."},
		"roots": {"roots",
			"Addresses that are trusted without anybody's word, by configuration. Trust flows from them. Without roots " +
				"only sources give raters weight."},
		"counted": {"ratings that count",
			"Those that the table of tags can read, and whose rater has weight, at the end of the newest " +
				"epoch."},
		"due": {"documents due", "Files that agents or ratings point to and that wait to be fetched."},
		"points": {"points",
			"What a contribution adds to the score. The points of all contributions add up to the score exactly."},
		"opinion": {"opinion",
			"From -1 to 1: the mean of a rater's ratings of this agent in one channel, weighted by their age."},
		"weight": {"weight",
			"From 0 to 1: how much a rater's opinion counts. It comes from roots, from other raters with weight, or " +
				"from sources."},
		"evidence": {"evidence", "In units. One opinion of a rater of full weight is one unit, after all bounds."},
		"without":  {"without", "The score that the agent would have if some raters had never rated it."},
		"median": {"median",
			"The middle of the latest ratings with this tag, one for each reviewer, so that nobody counts twice."},
		"mean": {"mean", "The mean of the latest ratings with this tag, one for each reviewer."},
		"independence": {"seem to be",
			"Raters count as one here that own, or are the wallet of, agents of one owner, or whose first " +
				"ratings came in one block with the same value. It is no part of the score."},
		"oneAgent": {"rated nothing else", "The part of the raters that have rated no other agent of the chain."},
		"burst":    {"busiest day", "The part of the newest ratings that came within the busiest 24 hours."},
		"openfi": {"identity checks",
			"Five checks of OpenFi: the agent exists, its registration can be read, its agent.json can be " +
				"read, its operator matches, and its validation. They are no part of the score."},
		"validation": {"answer",
			"From 0 to 100, by the validator. Anybody can answer 100 in a contract that is not on the list of " +
				"trusted contracts."},
		"price": {"price",
			"Of one call or unit, in US dollars or a coin of one dollar, as the domain's manifest says."},
		"manifestTier": {"tier of the manifest",
			"From none to 3+. Claimed is what the agent.json says of itself; proven is what the " +
				"index could verify."},
		"readable": {"readable",
			"The part of the ratings that scores can read: the tag belongs to the score, and the value is within " +
				"its range. Whether one counts depends on its rater too."},
		"attack": {"price of a score of 50",
			"What credentials cost that lift a new agent to a score of 50, by published prices alone. " +
				"To rent a holder of one costs less."},
		"history": {"score over time",
			"The final score at the end of each day. Days without a new one show the last one before."},
	}
}

// aboutWork explains numbers of tasks, runs, treasuries, operations and agents that run here.
func aboutWork() map[string]Tip {
	return map[string]Tip{
		"budget": {"budget",
			"What the run and all runs below it may use, as the task and the policy say, and what they have used. A call " +
				"that would go beyond a limit is refused."},
		"attempt": {"attempt", "How often the run has begun: 1 at first, one more with each retry."},
		"took":    {"took", "The time between the recorded beginning and the recorded end."},
		"verdict": {"verdict",
			"From 0 to 100 %: what the agent's own check of its work gave. Receipts of the kind verification are what it " +
				"looked at."},
		"receipts": {"calls",
			"The runtime's own record of what the run called, written before each call and completed after it. Agents " +
				"cannot change it."},
		"decisions": {"decisions",
			"What the policy, the trust gate and persons decided about the run. Each has the hash of the one before, so " +
				"that none can be changed unseen."},
		"atRisk": {"value at risk",
			"How much may be lost, in wei, as the task states. Thresholds of trust grow with it."},
		"perTx": {"cap of one payment",
			"The most that the treasury lets the agent move at once, in the chain's native coin."},
		"window": {"cap of the window",
			"The most that the treasury lets the agent move within the length of the window, in the chain's native " +
				"coin. The window moves with time."},
		"spent": {"spent", "What counts against the cap of the window now: payments that are younger than its length."},
		"paidDay": {"paid in 24 hours",
			"Signed payments by x402 of the last 24 hours, whatever the server answered: it may settle them later. " +
				"The cap of a day counts the same."},
		"paidWeek": {"paid in seven days",
			"Signed payments by x402 of the last seven days. Refused ones are left out."},
		"left": {"left", "What the agent may move now by its caps, whatever the treasury holds."},
		"rpcRate": {"rate",
			"How many requests per second the endpoint is sent at most now. A refusal halves it, successes raise it."},
		"planned":    {"planned", "Documents with a time of the next try, due now or later."},
		"dead":       {"given up", "Documents that failed permanently or too often. They are tried rarely."},
		"jobs":       {"jobs", "Entries of the queue. Those that ended are kept for some days."},
		"delivered":  {"delivered", "Messages that the receiver accepted since the webhook was added."},
		"rate":       {"rate", "How many requests per second the holder of the key may send."},
		"executions": {"executions", "How often the capability was run in thirty days, by paying and free callers."},
		"failures":   {"failed", "Executions whose answer had a status of 400 or more."},
		"paidRuns":   {"paid", "Executions for which money moved or was promised."},
		"lastPrice":  {"price", "What the newest paid execution was paid, in the currency that is shown with it."},
		"revenue": {"revenue",
			"What all paid executions of thirty days were paid together. Refunds are not taken off."},
		"rootWeight": {"weight of a root",
			"Only the ratio between the weights of a set counts: a root of weight 2 starts twice as much trust " +
				"as one of weight 1."},
		"measured": {"measured",
			"What the attack reached, or what was counted, when this release was measured on generated ratings. It is not " +
				"a measurement of this index."},
		"bound": {"limit",
			"What the measured value must keep, so that a change of the scorer that lets an attack reach more does not pass."},
		"size": {"size", "Of the file as it was given or read, in bytes."},
	}
}

// words says in plain words what a code of an answer means; a code without an entry is shown with spaces for hyphens.
func words(code string) string {
	if text, known := plainWords()[code]; known {
		return text
	}
	return strings.ReplaceAll(Short(code), "-", " ")
}

// plainWords are what codes mean, for people.
func plainWords() map[string]string {
	return map[string]string{
		// states of documents
		"none": "no document", "pending": "not read yet", "ok": "read", "invalid": "not a valid file",
		"failed": "cannot be read",
		"dead":   "given up", "denied": "not shown by the operator",
		// what follows for a reader
		"document.none":    "The agent names no document. Ask its owner to set one: without it nobody knows what it offers.",
		"document.pending": "The document waits to be read. Load the page again in a minute.",
		"document.invalid": "The document was read, but it is not a registration file. The problems below say what its owner has to fix.",
		"document.failed":  "The document could not be read. It is tried again at the time below.",
		"document.dead":    "The document could not be read many times. It is tried rarely now, and after the agent names another one.",
		"document.denied":  "The operator of this index does not show the document.",
		// completeness
		"complete": "complete", "verifying": "being verified", "unproven": "unproven", "partial": "partial",
		"incomplete": "gaps",
		// verdicts
		"linked": "names this agent", "unlinked": "names no agent", "other": "names other agents",
		"proven": "confirmed by the domain", "refused": "not confirmed by the domain", "unavailable": "not checked yet",
		"verified": "the bytes are those that the chain names",
		"mismatch": "the bytes are not those that the chain names",
		"absent":   "nothing on the chain says which bytes were meant",
		// what a gate lacks
		"rated": "status rated", "low": "lower bound", "high": "upper bound", "paths": "independent paths of trust",
		"evidence": "units of evidence", "recentRaters": "recent raters",
		"registrationResolves": "a registration that can be read",
		"walletDeclared":       "a wallet that the document declares",
		"domainsProven":        "domains that confirm the agent",
		"checked":              "a check of its identity", "atLeast": "at least", "below": "below",
		// why a row does not count
		"self": "the rater is the agent's own identity", "unknown-tag": "the tag is not in the table of tags",
		"out-of-range": "the value is outside of the tag's range", "scale": "nobody knows the scale of the value",
		"other-channel": "the tag is about something else than the score",
		"earlier-owner": "praise from before the owner got the agent",
		"future":        "its time is in the future", "undated": "the time of its block is unknown",
		"gateway":   "a gateway wrote it without a rater",
		"no-weight": "its rater has no weight",
		// kinds of contributions
		"opinion": "opinion", "rest": "all others together", "prior": "starting value",
		"unrated": "set to 0 while unrated",
		"guard":   "limited by a related agent", "age": "age since it was computed",
		// circuits of endpoints
		"circuit.closed": "works", "circuit.open": "left alone for a while", "circuit.half_open": "being tried",
		"circuit.excluded": "serves another chain",
		// effects of decisions, statuses of runs
		"allow": "allowed", "deny": "refused", "require_approval": "left to a person", "dry_run": "dry run",
		"chain_read": "read of a chain",
		"sub_run":    "other run", "awaiting": "waits for a person",
		// ranks of documents
		"rank.new": "of agents, never read", "rank.agent": "of agents, read before", "rank.proof": "proofs of domains",
		"rank.file": "of ratings and validations",
		// proofs
		"keccak256": "the hash on the chain", "cid": "the IPFS address", "uri": "the document is on the chain itself",
	}
}
