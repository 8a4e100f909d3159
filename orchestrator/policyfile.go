package orchestrator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"repute"
	"repute/policy"
)

// PolicyFile is a policy that is read again when its file changes. A file that is wrong
// changes nothing: the last good policy counts.
type PolicyFile struct {
	path    string
	gates   []string
	seen    time.Time // when the file was written that was read last
	current atomic.Pointer[policy.Policy]
}

// DefaultPolicy is the policy where no file is given: OpenFi's default limits, identity
// as agents must have it, nothing else.
const DefaultPolicy = "version: \"1\"\n"

// OpenPolicy reads a policy; an empty path is DefaultPolicy. gates are those that it may
// ask for. repute.ErrInvalid says what does not compile.
func OpenPolicy(path string, gates []string) (*PolicyFile, error) {
	f := &PolicyFile{path: path, gates: gates}
	if path == "" {
		p, err := policy.Parse([]byte(DefaultPolicy))
		f.current.Store(p)
		return f, err
	}
	_, err := f.read()
	return f, err
}

// Current is the policy that counts now.
func (f *PolicyFile) Current() *policy.Policy { return f.current.Load() }

// read takes the file over where it has changed.
func (f *PolicyFile) read() (changed bool, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return false, repute.Invalid("orchestrator.policy", err.Error(), "a readable file")
	}
	if info.ModTime().Equal(f.seen) {
		return false, nil
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return false, repute.Invalid("orchestrator.policy", err.Error(), "a readable file")
	}
	f.seen = info.ModTime()
	p, err := policy.Parse(text)
	if err == nil {
		err = p.CheckGates(f.gates)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", f.path, err)
	}
	f.current.Store(p)
	return true, nil
}

// Watch looks for changes until ctx ends.
func (f *PolicyFile) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	for f.path != "" && ctx.Err() == nil {
		pause(ctx, every)
		switch changed, err := f.read(); {
		case err != nil:
			log.Warn("the policy's file is wrong, the one before counts", "error", err)
		case changed:
			log.Info("policy read", "file", f.path, "sha256", fmt.Sprintf("%x", f.Current().Hash()))
		}
	}
}
