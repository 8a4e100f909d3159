package api

import (
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/trust/statement"
)

// keysPath is the path of the public keys that verify statements.
const keysPath = "/.well-known/repute-keys.json"

// mountKeys serves the public keys that verify statements.
func (a *API) mountKeys() {
	keys := statement.KeyList{}
	if a.Signer != nil {
		keys = a.Signer.Keys()
	}
	example := map[string]any{"keys": []any{map[string]any{"address": "0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
		"from": nil, "to": nil}}}
	a.server.Get(httpapi.Route{Path: keysPath, ID: "get-keys", ContentType: jsonType, Example: example,
		Summary: "Lists the keys that sign final scores; repute verify-snapshot --keys reads them",
	}, func(c echo.Context) error {
		body, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Cache-Control", "public, max-age=300")
		return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
	})
}
