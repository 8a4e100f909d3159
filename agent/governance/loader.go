package governance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Source gives the text of a policy.
type Source interface {
	Read(ctx context.Context) ([]byte, error)
}

// Verifier checks a signature against the agent's owner. repute.ErrInvalid: another signed.
// Other errors say that it could not be decided now.
type Verifier interface {
	VerifyPolicy(ctx context.Context, hash common.Hash, signature []byte) error
}

// FileSource reads a policy from a file.
type FileSource string

// Read implements Source.
func (f FileSource) Read(context.Context) ([]byte, error) {
	file, err := os.Open(string(f))
	if err != nil {
		return nil, repute.Invalid("policy", err.Error(), "a readable file")
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxFile+1))
}

// Loaded is the policy that counts, and how it stands with the newest text.
type Loaded struct {
	Policy *Policy
	Signed bool      // the owner's signature was verified
	Since  time.Time // when this policy was loaded
	// Problem says why the newest text does not count, nil when it does.
	Problem error
}

// Loader keeps the policy of an agent up to date. It is safe for concurrent use.
type Loader struct {
	source   Source
	verifier Verifier
	agentID  AgentID
	unsigned bool
	now      func() time.Time

	loading sync.Mutex // one Load at a time
	mu      sync.Mutex
	current Loaded
}

// LoaderOptions configure a Loader.
type LoaderOptions struct {
	Source   Source
	Verifier Verifier // nil: signatures are not verified, and AllowUnsigned MUST be set
	AgentID  string   // decimal; a policy of another agent is refused
	// AllowUnsigned accepts a policy without a signature. A signature that is there MUST still be good.
	AllowUnsigned bool
	Now           func() time.Time // time.Now when nil
}

// NewLoader returns a Loader without a policy; see Loader.Load.
func NewLoader(o LoaderOptions) (*Loader, error) {
	token, err := repute.ParseTokenID(o.AgentID)
	if err != nil {
		return nil, err
	}
	if o.Verifier == nil && !o.AllowUnsigned {
		return nil, errors.New("policy: a verifier is needed, or unsigned policies allowed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Loader{source: o.Source, verifier: o.Verifier, agentID: AgentID(token.Dec()), unsigned: o.AllowUnsigned,
		now: o.Now}, nil
}

// Current is the policy that counts now. Its Policy is nil before the first Load that succeeded.
func (l *Loader) Current() Loaded {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current
}

// Load reads the source. A valid policy replaces the present one. When the new policy is not valid, the last valid
// one stays in force, and Current returns the error that Load returns. The signature is verified each time,
// because an agent can change its owner. changed reports whether the policy in force is another one than before.
func (l *Loader) Load(ctx context.Context) (changed bool, err error) {
	l.loading.Lock()
	defer l.loading.Unlock()
	p, signed, err := l.read(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.current.Problem = err
		return false, err
	}
	changed = l.current.Policy == nil || l.current.Policy.hash != p.hash
	since := l.current.Since
	if changed {
		since = l.now()
	}
	l.current = Loaded{Policy: p, Signed: signed, Since: since}
	return changed, nil
}

// read returns the policy of the source when it is good.
func (l *Loader) read(ctx context.Context) (p *Policy, signed bool, err error) {
	text, err := l.source.Read(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("read policy: %w", err)
	}
	if p, err = Parse(text); err != nil {
		return nil, false, err
	}
	if p.file.AgentID != l.agentID {
		return nil, false, repute.Invalid("agentId", fmt.Sprintf("the policy is of agent %.80s", p.file.AgentID),
			"the policy of agent "+string(l.agentID))
	}
	switch {
	case p.signature == nil && !l.unsigned:
		return nil, false, repute.Invalid("signature", "missing", "the signature of the agent's owner")
	case p.signature == nil || l.verifier == nil:
		return p, false, nil
	}
	if err := l.verifier.VerifyPolicy(ctx, p.hash, p.signature); err != nil {
		return nil, false, fmt.Errorf("signature of the policy: %w", err)
	}
	return p, true, nil
}

// Watch loads the policy at an interval until ctx ends. It logs a change, and each problem once.
func (l *Loader) Watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := l.Load(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != told:
			log.Warn("the agent's policy is wrong, the one before counts", "error", err)
		case changed:
			log.Info("policy read", "hash", l.Current().Policy.Hash())
		}
		told = ""
		if err != nil {
			told = err.Error()
		}
	}
}
