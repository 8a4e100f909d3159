// Package config reads the file agent.yaml and the environment of the Agent Runtime Specification
// (section 14). Variables win over the file: where both say something else, a note tells. Unknown
// members are refused with the allowed ones.
package config
