package api

import (
	"net/http"

	"repute/web"

	"github.com/labstack/echo/v4"
)

// pagePolicy allows a page to run its own script and to call this server: no inline script, no
// other host.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves one embedded file.
func page(name string) echo.HandlerFunc {
	return func(c echo.Context) error {
		body, contentType, err := web.File(name)
		if err != nil {
			return err
		}
		c.Response().Header().Set("Content-Security-Policy", pagePolicy)
		c.Response().Header().Set("Cache-Control", "public, max-age=300")
		return c.Blob(http.StatusOK, contentType, body)
	}
}
