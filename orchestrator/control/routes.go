package control

import (
	"net/http"

	"repute/orchestrator/control/rest"
)

// mount is the table of the routes.
func (c *Control) mount() {
	rest.Read(c.router, "/agents", "list-task-agents", "Lists the agents that can be given tasks", c.listAgents)
	rest.Read(c.router, "/agents/{slug}", "get-task-agent", "Returns an agent that can be given tasks", c.getAgent)
	rest.Read(c.router, "/agents/{slug}/trust", "get-agent-trust",
		"Returns what the trust gate would decide about an agent now",
		c.getTrust)
	rest.Write[TrustQuestion](c.router, http.MethodPost, "/agents/{slug}/trust", "recompute-agent-trust",
		"Evaluates the trust gate for an agent again, and recomputes its final score from the stored evidence",
		c.recomputeTrust)
	rest.Write[AgentRegistration](c.router, http.MethodPost, "/agents", "register-agent",
		"Registers an agent that runs on a server of its own", c.registerAgent)
	rest.Write[rest.None](c.router, http.MethodDelete, "/agents/{slug}", "remove-agent",
		"Removes an agent that runs on a server of its own; its past runs stay", c.removeAgent)

	rest.Read(c.router, "/tasks", "list-tasks", "Lists tasks, newest first", c.listTasks)
	rest.Read(c.router, "/tasks/{id}", "get-task", "Returns a task with its runs", c.getTask)
	rest.Write[TaskRequest](c.router, http.MethodPost, "/tasks", "submit-task", "Submits a task", c.submitTask)
	rest.Write[Cancellation](c.router, http.MethodPost, "/tasks/{id}/cancel", "cancel-task",
		"Requests that a task be cancelled",
		c.cancelTask)
	rest.Write[RetryFrom](c.router, http.MethodPost, "/tasks/{id}/retry", "retry-task",
		"Starts another attempt of a task that failed", c.retryTask)

	rest.Read(c.router, "/runs", "list-runs",
		"Lists runs, newest first, by status, slug of the agent, identity on the chain, or those that wait",
		c.listRuns)
	rest.Read(c.router, "/runs/{id}", "get-run", "Returns a run: phases, steps, budget used, and why it was refused",
		c.getRun)
	rest.Read(c.router, "/runs/{id}/receipts", "list-receipts",
		"Lists receipts of a run: its recorded calls of tools, addresses and chains", c.listReceipts)
	rest.Read(c.router, "/runs/{id}/decisions", "list-decisions",
		"Lists the decisions about a run's task, each linked to the one before by its hash", c.listDecisions)
	rest.Read(c.router, "/runs/{id}/gate:verify", "verify-gate",
		"Verifies the hashes of the decisions about a run's task, and recomputes its trust decisions from the stored evidence", c.verifyGate)
	rest.Write[ApprovalAnswer](c.router, http.MethodPost, "/runs/{id}/approval", "approve-run",
		"Approves or rejects what a run waits for", c.approveRun)
}
