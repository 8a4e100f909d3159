package policyfile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"repute"
	"repute/policy"
)

// PolicyFile is a policy that is read again when its file changes. A change counts when two
// looks in a row found the same content, so that a file in the middle of being written, whose
// first rules may compile without the others, never does. A file that is wrong changes
// nothing: the last good policy counts.
type PolicyFile struct {
	path    string
	gates   []string
	looked  [sha256.Size]byte // hash of the content at the last look
	judged  [sha256.Size]byte // hash of the content that was compiled last, right or wrong
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
	text, err := f.text()
	if err != nil {
		return f, err
	}
	return f, f.compile(text)
}

// Current is the policy that counts now.
func (f *PolicyFile) Current() *policy.Policy { return f.current.Load() }

// text is what the file holds now.
func (f *PolicyFile) text() ([]byte, error) {
	text, err := os.ReadFile(f.path)
	if err != nil {
		return nil, repute.Invalid("orchestrator.policy", err.Error(), "a readable file")
	}
	return text, nil
}

// read takes over content that differs from what was compiled last and has not changed since
// the look before.
func (f *PolicyFile) read() (changed bool, err error) {
	text, err := f.text()
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256(text)
	stable := sum == f.looked
	f.looked = sum
	if !stable || sum == f.judged {
		return false, nil
	}
	if err := f.compile(text); err != nil {
		return false, err
	}
	return true, nil
}

// compile makes a text the policy that counts.
func (f *PolicyFile) compile(text []byte) error {
	f.judged = sha256.Sum256(text)
	p, err := policy.Parse(text)
	if err == nil {
		err = p.CheckGates(f.gates)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.current.Store(p)
	return nil
}

// Watch looks for changes until ctx ends.
func (f *PolicyFile) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	if f.path == "" {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		switch changed, err := f.read(); {
		case err != nil:
			log.Warn("the policy's file is wrong, the one before counts", "error", err)
		case changed:
			log.Info("policy read", "file", f.path, "sha256", fmt.Sprintf("%x", f.Current().Hash()))
		}
	}
}
