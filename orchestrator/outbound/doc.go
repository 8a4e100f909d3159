// Package outbound sends the HTTP requests of agents: bounded answers, harmless headers, and
// errors that quote no secret.
package outbound
