package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/agent/signed"
)

// Beat is the last heartbeat, with its signature.
type Beat struct {
	Mode      Mode          `json:"mode"`
	Version   string        `json:"version"`
	Timestamp uint64        `json:"timestamp"` // seconds since 1970
	Signature hexutil.Bytes `json:"signature"`
}

// Heartbeat returns the last one, nil before the first.
func (r *Router) Heartbeat() *Beat { return r.beat.Load() }

// Beat signs a heartbeat and stores it.
func (r *Router) Beat(ctx context.Context) error {
	mode, _ := r.gate.state()
	h := signed.Heartbeat{AgentID: r.o.ID.TokenID, Mode: string(mode), Version: r.o.Version,
		Timestamp: uint64(time.Now().Unix())}
	sig, err := r.o.Signer.SignTyped(ctx, h.Data(signed.DomainOf(r.o.ID)))
	if err != nil {
		return fmt.Errorf("sign heartbeat: %w", err)
	}
	b := &Beat{mode, h.Version, h.Timestamp, sig}
	r.beat.Store(b)
	r.Event(ctx, "heartbeat", b)
	return nil
}

// Score returns the own score as it was last read, nil where it never was.
func (r *Router) Score() *Score { return r.score.Load() }

// SetScore takes a new own score, nil where none could be read, and follows the policy's choice of a
// mode.
func (r *Router) SetScore(ctx context.Context, s *Score) {
	if s != nil {
		r.score.Store(s)
	}
	r.choosing.Lock() // the mode that was chosen last is the one that counts
	defer r.choosing.Unlock()
	mode, reason := r.o.Governor.Mode(r.score.Load(), time.Now())
	r.SetMode(ctx, mode, reason)
}
