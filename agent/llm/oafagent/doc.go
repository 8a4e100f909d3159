// Package oafagent runs an agent of the Open Agent Format: its prompt, skills, MCP servers and memory become a
// conversation of package llm.
//
// Load and Read find an agent in a directory, and New prepares it: it chooses the model of the operator's table and
// judges each MCP server, but starts and connects nothing. Agent.Run has one conversation, in a Session that says who
// counts the calls, who is asked for confirmations and which memory is read. Capability is an agent as the work behind
// a capability of the agent runtime; Lister asks its servers for their tools, to check the files.
//
// # What an agent may do
//
// The directory of an agent is text of its author, and the model reads texts of strangers. What runs programs, reads
// secrets or reaches networks is therefore allowed by the operator's Options alone: Programs (MCP servers on standard
// input and output, scripts of skills), Env (variables that its files may name as ${NAME}), and Client, which decides
// what is reached. The agent's file can only restrict what the operator allows: by config.tools, tools, selections and
// permissions of servers. A server chooses the names of its tools, so that a name which could mean another tool is not
// matched by lists that allow (granted).
//
// Values of the environment are replaced by their names in everything that a server returns. Secrets in the open are
// refused. Paths in inputs are checked against the permissions of a server by every reading that a server could have of
// them; see server.permits for what that does not cover.
//
// # Resuming
//
// Listings of tools and the memory at the beginning are calls of the ledger, so that a resumed conversation begins with
// the same prompt and tools. A tool of a server is called again only where the agent's file says that this does no
// harm.
package oafagent
