package oafagent

import (
	"fmt"
	"os"
	"path/filepath"

	"repute"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
)

// Load reads the agent of a directory for oaf.Load. Sub-agents are found up to the directory that contains its parent,
// which may be the vendor's, and never outside that one.
func Load(dir string, how problem.Profile) (*oaf.Agent, []problem.Problem, error) {
	const hint = "the directory of an agent"
	at, err := filepath.EvalSymlinks(dir)
	if err == nil {
		at, err = filepath.Abs(at)
	}
	if err != nil {
		return nil, nil, repute.Invalid("directory", fmt.Sprintf("%.300s", err.Error()), hint)
	}
	if info, err := os.Stat(at); err == nil && !info.IsDir() {
		return nil, nil, repute.Invalid("directory", dir+" is a file",
			"the directory that it is in: "+filepath.Dir(dir))
	}
	border := filepath.Dir(filepath.Dir(at))
	below, err := filepath.Rel(border, at)
	if err != nil {
		return nil, nil, repute.Invalid("directory", fmt.Sprintf("%.300s", err.Error()), hint)
	}
	root, err := os.OpenRoot(border)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", border, err)
	}
	defer root.Close()
	a, problems := oaf.Load(root.FS(), filepath.ToSlash(below), how)
	return a, problems, nil
}

// Read reads the agent in a directory, with the sub-agents that Load finds. repute.ErrInvalid: the first problem
// that is an error.
func Read(dir string) (*oaf.Agent, error) {
	a, problems, err := Load(dir, problem.Lenient)
	if err != nil {
		return nil, fmt.Errorf("oaf: %w", err)
	}
	if p, bad := repute.FirstError(problems); bad || a == nil {
		return nil, repute.Invalid("oaf", fmt.Sprintf("%.200s cannot be used: %s:%d: %s", dir, p.File, p.Line,
			p.Message),
			"repute oaf check shows all problems")
	}
	return a, nil
}
