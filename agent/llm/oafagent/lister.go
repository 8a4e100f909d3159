package oafagent

import (
	"context"

	"repute/manifest/oaf"
)

// Lister asks the MCP servers of agents for their tools, with the same bounds and rights as an agent that runs: what
// may be started and reached, and which variables its files may use, say Options. It implements oaf.ToolLister.
type Lister struct{ Options }

// ListTools implements oaf.ToolLister. repute.ErrInvalid: the operator does not allow what the server needs;
// repute.ErrUnavailable: it does not answer.
func (l Lister) ListTools(ctx context.Context, def oaf.Server) ([]string, error) {
	s, err := newServer(&def, &l.Options)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	session, done, err := s.connect.Session(ctx)
	if err != nil {
		return nil, s.failure("it cannot be reached", err)
	}
	defer done()
	names := []string{}
	for t, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, s.failure("its tools cannot be listed", err)
		}
		if names = append(names, t.Name); len(names) >= 10*maxTools {
			break // a hostile server can list tools without end
		}
	}
	return names, nil
}
