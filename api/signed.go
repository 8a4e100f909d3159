package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/trust/statement"
)

// SignedScore is a statement as package statement writes it.
type SignedScore struct{ statement.Signed }

// Schema keeps the schema from being guessed out of Go's fields.
func (SignedScore) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// signedAt is the view that a signed answer is of: the finalized one, or an older block.
func signedAt(flag Flag, at string) (signed bool, view string, err error) {
	if signed, err = parseSwitch("signed", flag); err != nil || !signed {
		return false, at, err
	}
	if at == string(repute.Latest) || at == string(repute.Safe) {
		return true, at, repute.Invalid("at", "only final scores are signed", "leave at out, or give finalized or a block number")
	}
	if at == "" {
		at = string(repute.Finalized)
	}
	return true, at, nil
}

// parseSwitch reads what asks for more than the usual answer.
func parseSwitch(field string, flag Flag) (on bool, err error) {
	switch strings.ToLower(string(flag)) {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	}
	return false, repute.Invalid(field, "not a yes or no", "1 or 0")
}

// signedScore signs an agent's final score of a view. repute.ErrConflict: no key is
// configured, or there is no final score.
func (a *API) signedScore(ctx context.Context, id repute.AgentID, at repute.At) (*SignedScore, error) {
	if a.signer == nil {
		return nil, repute.Conflict("this server signs nothing: no signing key is configured")
	}
	score, _, err := a.db.ScoreOf(ctx, id, at)
	var missing *repute.MissingError
	if errors.Is(err, repute.ErrNotFound) && !errors.As(err, &missing) {
		return nil, repute.Conflict("agent %s has no final score at that block: ask without signed", id.Short())
	}
	if err != nil {
		return nil, unknownAgent(err)
	}
	signed, err := a.signer.Sign(score, time.Now())
	if err != nil {
		return nil, err
	}
	return &SignedScore{signed}, nil
}

// keysPath is where the keys are that sign statements.
const keysPath = "/.well-known/repute-keys.json"

// mountKeys serves the keys that sign statements.
func (a *API) mountKeys() {
	keys := statement.KeyList{}
	if a.signer != nil {
		keys = a.signer.Keys()
	}
	a.echo.GET(keysPath, func(c echo.Context) error {
		body, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Cache-Control", "public, max-age=300")
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
	})
}
