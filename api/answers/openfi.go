package answers

import (
	"context"

	"repute"
	"repute/api/wire"
	"repute/trust/identity"
)

// OpenFi is OpenFi's summary of trust in an agent, computed from the same snapshot as the score.
func (x *Index) OpenFi(ctx context.Context, id repute.AgentID, at repute.At) (*wire.OpenFi, error) {
	s, err := identity.OpenFi(ctx, x.DB, id, at)
	if err != nil {
		return nil, err
	}
	return wire.EncodeOpenFi(s), nil
}
