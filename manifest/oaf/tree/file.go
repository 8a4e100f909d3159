// Package tree reads the files of an agent's directory or archive, which others wrote, within limits.
package tree

// File is one file below the directory of an agent or of a skill.
type File struct {
	Path       string // slash-separated, relative to the directory that it belongs to
	Data       []byte
	Executable bool // the file has an execute permission
}
