// Package oafagent runs an agent of the Open Agent Format: its prompt, skills, MCP servers and memory become a
// conversation of package llm.
//
// The directory of an agent is text of its author. What runs programs, reads secrets or reaches networks in its
// name is therefore allowed by the operator's Options alone: programs (MCP servers over standard input and output,
// scripts of skills), and the environment variables that its files may name as ${NAME}.
package oafagent
