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

// History remembers the signed policy that was in force last, for all processes of an agent and across
// restarts.
type History interface {
	// LastPolicy returns the newest policy, the zero Issue for none.
	LastPolicy(ctx context.Context) (Issue, error)
	AddPolicy(ctx context.Context, i Issue) error
}

// Issue names a signed policy.
type Issue struct {
	At     time.Time // issuedAt; zero where the policy has none
	Hash   common.Hash
	Stored time.Time // set by History
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
	history  History
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
	// History is what keeps an old signed policy from coming back. Nil: nothing does after a restart.
	History History
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
	if o.History == nil {
		o.History = &memory{}
	}
	return &Loader{source: o.Source, verifier: o.Verifier, history: o.History,
		agentID: AgentID(token.Dec()), unsigned: o.AllowUnsigned,
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
	if err := l.inOrder(ctx, p); err != nil {
		return nil, false, err
	}
	return p, true, nil
}

// Bounds of the time of a policy.
const (
	// maxAhead is how far clocks may differ.
	maxAhead = 5 * time.Minute
	// rememberAgain is how often a policy that stays is stored, because old entries of a History are
	// dropped.
	rememberAgain = 24 * time.Hour
)

// inOrder refuses a signed policy that is older than one that was in force. Otherwise the server of the file could
// bring back rules that the owner replaced. A policy that is not refused is stored before it takes effect.
func (l *Loader) inOrder(ctx context.Context, p *Policy) error {
	last, err := l.history.LastPolicy(ctx)
	if err != nil {
		return fmt.Errorf("policies that were in force: %w", err)
	}
	var at time.Time
	if p.file.IssuedAt != nil {
		at = *p.file.IssuedAt
	}
	const field, hint = "issuedAt", "the time at which the owner signs, such as 2026-11-24T12:00:00Z"
	switch now := l.now(); {
	case last.Hash == p.hash && now.Sub(last.Stored) < rememberAgain:
		return nil
	case at.After(now.Add(maxAhead)):
		return repute.Invalid(field, "is in the future", hint)
	case last.Hash == p.hash:
	case !last.At.IsZero() && at.IsZero():
		return repute.Invalid(field, "is missing, and a policy that was in force has one", hint)
	case !last.At.IsZero() && !at.After(last.At):
		return repute.Invalid(field, "is not after "+last.At.UTC().Format(time.RFC3339)+
			", of a policy that was in force", hint)
	}
	return l.history.AddPolicy(ctx, Issue{At: at, Hash: p.hash})
}

// memory is a History of this process alone.
type memory struct {
	mu   sync.Mutex
	last Issue
}

// LastPolicy implements History.
func (m *memory) LastPolicy(context.Context) (Issue, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, nil
}

// AddPolicy implements History.
func (m *memory) AddPolicy(_ context.Context, i Issue) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = i
	return nil
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
