// Package config reads agent.yaml, in which an operator describes an agent, and the environment of the Agent Runtime
// Specification (section 14).
//
// Load and Parse return a Config that is complete and checked: defaults are filled in, relative paths follow the
// directory of the file, and every value is within its bounds. Variables win over the file; where both say something
// else, Config.Notes tells. Unknown members are refused with the allowed ones, and the error joins everything that is
// wrong, so that an operator can fix all errors at once. Errors show no secret: a key is named by its variable or file,
// and a URL by its host.
//
// The tags doc and default of the fields are the source of the reference (docs/reference/agent.md), and default is also
// what an absent member means. The package opens the configuration file alone. The program that uses the Config opens
// keys, policies and handlers.
package config
