package oafagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"repute"
	"repute/agent/capability"
	"repute/agent/handler"
	"repute/agent/llm"
	"repute/manifest/oaf/skill"
	"repute/manifest/oaf/tree"
)

// Bounds of scripts.
const (
	scriptWall = 60 * time.Second
	maxArgs    = 32
	maxOutput  = 1 << 20 // bytes of standard output
)

// skillTools read skills on demand, so that a conversation begins with their names and descriptions alone.
func (r *run) skillTools() (out []tool) {
	if len(r.def.LocalSkills) == 0 {
		return nil
	}
	out = []tool{
		own(llm.Tool{ToolDef: llm.ToolDef{Name: "skill",
			Description: "Returns the instructions of a skill and the names of its files.",
			Schema:      schema("name")}, Run: r.readSkill}, "Skill"),
		own(llm.Tool{ToolDef: llm.ToolDef{Name: "skill_file", Description: "Returns a text file of a skill.",
			Schema: schema("name", "path")}, Run: r.readFile}, "Read"),
	}
	if r.o.Programs && r.hasScripts() && r.mayRunScripts() {
		script := scripts()
		script.Tool = r.confirm(llm.Tool{ToolDef: llm.ToolDef{Name: scriptTool,
			Description: "Runs a script of a skill with arguments and returns what it prints. It has limits of memory and time.",
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"path":{"type":"string"},` +
				`"args":{"type":"array","items":{"type":"string"}}},"required":["name","path"],"additionalProperties":false}`)},
			Run: r.runScript, Once: true})
		out = append(out, script)
	}
	return out
}

// scriptTool is the tool that runs scripts of skills.
const scriptTool = "skill_script"

// scriptNames are the names that lists may give it.
func scriptNames() []string { return scripts().names }

// scripts is the tool without what it does.
func scripts() tool { return own(llm.Tool{ToolDef: llm.ToolDef{Name: scriptTool}}, "Bash") }

// hasScripts reports whether a skill has a script. Without one the model is not offered the tool that runs them.
func (a *Agent) hasScripts() bool {
	for i := range a.def.LocalSkills {
		if len(a.def.LocalSkills[i].Scripts()) > 0 {
			return true
		}
	}
	return false
}

// asked is the input of the tools of skills.
type asked struct {
	Name, Path string
	Args       []string
}

// find returns the skill, and the file, that an input names.
func (a *Agent) find(input json.RawMessage) (q asked, s *skill.Skill, f *tree.File, err error) {
	if err := json.Unmarshal(input, &q); err != nil {
		return q, nil, nil, repute.Invalid("input", "has the wrong type", "name and path as texts")
	}
	if s = a.def.Skill(q.Name); s == nil {
		return q, nil, nil, repute.Unknown("skill %.80q", q.Name)
	}
	for i := range s.Files {
		if s.Files[i].Path == path.Clean(q.Path) {
			f = &s.Files[i]
		}
	}
	return q, s, f, nil
}

// readSkill is the tool skill.
func (r *run) readSkill(_ context.Context, input json.RawMessage) (string, error) {
	_, s, _, err := r.find(input)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(s.Body)
	if len(s.Files) > 0 {
		b.WriteString("\n\nFiles of this skill:\n")
		for _, f := range s.Files {
			fmt.Fprintf(&b, "- %s (%d bytes)\n", f.Path, len(f.Data))
		}
	}
	return b.String(), nil
}

// readFile is the tool skill_file.
func (r *run) readFile(_ context.Context, input json.RawMessage) (string, error) {
	q, _, f, err := r.find(input)
	switch {
	case err != nil:
		return "", err
	case f == nil:
		return "", repute.Unknown("file %.80q of skill %.80q", q.Path, q.Name)
	case !utf8.Valid(f.Data):
		return "", repute.Invalid("path", "is no text file", "a text file of the skill")
	}
	return string(f.Data), nil
}

// runScript is the tool skill_script. The skill's files are written to a directory of their own, in which the
// script runs without any environment.
func (r *run) runScript(ctx context.Context, input json.RawMessage) (string, error) {
	q, s, f, err := r.find(input)
	switch {
	case err != nil:
		return "", err
	case f == nil || !strings.HasPrefix(f.Path, "scripts/"):
		return "", repute.Unknown("script %.80q of skill %.80q", q.Path, q.Name)
	case len(q.Args) > maxArgs:
		return "", repute.Invalid("args", "are too many", fmt.Sprintf("at most %d", maxArgs))
	}
	dir, err := unpack(s)
	if err != nil {
		r.o.Log.WarnContext(ctx, "the files of a skill cannot be written", "skill", s.Name, "error", err)
		return "", fmt.Errorf("the skill's files cannot be written: %w", repute.ErrUnavailable)
	}
	defer os.RemoveAll(dir)
	program, args, err := interpreter(filepath.Join(dir, filepath.FromSlash(f.Path)), f)
	if err != nil {
		return "", err
	}
	e := &handler.Exec{Path: program, Args: append(args, q.Args...), Dir: dir, Wall: scriptWall, MaxAnswer: maxOutput,
		Text: true,
		Env:  []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + dir}, Log: r.o.Log}
	raw, err := e.Run(ctx, capability.Call{Capability: q.Name, Time: time.Now(), Input: input})
	switch {
	case errors.Is(err, handler.ErrTimeout):
		return "", fmt.Errorf("%w: %w", llm.ErrUncertain, err)
	case err != nil:
		return "", err
	}
	var text string
	err = json.Unmarshal(raw, &text)
	return text, err
}

// unpack writes a skill's files below a new directory that only this user can enter, and that the caller removes. After
// an error nothing is left.
func unpack(s *skill.Skill) (dir string, err error) {
	if dir, err = os.MkdirTemp("", "repute-skill-"); err != nil {
		return "", err
	}
	files := slices.Clone(s.Files)
	for i := range files {
		files[i].Executable = true // a script may run the files next to it
	}
	if err = tree.Write(dir, files, false); err != nil {
		_ = os.RemoveAll(dir) // the error is that of the file
		return "", err
	}
	return dir, nil
}

// interpreter returns the program of a script, by the ending of its name; other scripts must be executable.
func interpreter(file string, f *tree.File) (program string, args []string, err error) {
	known := map[string]string{".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node"}
	name, ok := known[path.Ext(f.Path)]
	if !ok && f.Executable {
		return file, nil, nil
	} else if !ok {
		return "", nil, repute.Invalid("path", "is not executable and of no known kind",
			".sh, .py, .js, or a file with the permission")
	}
	if program, err = exec.LookPath(name); err != nil {
		return "", nil, fmt.Errorf("%s is not installed: %w", name, repute.ErrUnavailable)
	}
	return program, []string{file}, nil
}
