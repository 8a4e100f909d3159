// Package tree reads the files of an agent's directory or archive, which others wrote, within limits, and writes files
// below a directory.
//
// Read returns the files of a directory. It follows no symbolic link, refuses names that leave the directory or mean
// something else on another system (IsSafe), and stops at a Budget of files and bytes that all agents of one call
// share. OpenZip returns the file system of an archive only if every entry is safe and the archive does not unpack to
// far more than it holds.
//
// Write and Install never leave their directory, also where that has symbolic links, and check everything before the
// first file is written. Zip makes equal archives of equal files.
package tree

// File is one file below the directory of an agent or of a skill.
type File struct {
	Path       string // slash-separated, relative to the directory that it belongs to
	Data       []byte
	Executable bool // the file has an execute permission
}
