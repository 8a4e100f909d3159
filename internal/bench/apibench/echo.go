package apibench

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"repute/internal/bench/harness"
)

// ServeConstant serves a constant body of a size until ctx ends, by the router that the product uses and nothing else.
// It prints its URL as the first line, as harness.StartServing expects. What the product is slower by is what it does
// for an answer, not what HTTP takes.
func ServeConstant(ctx context.Context, out io.Writer, bytesOfBody int) error {
	body := bytes.Repeat([]byte("x"), bytesOfBody)
	e := echo.New()
	e.GET("/*", func(c echo.Context) error { return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body) })
	return harness.Announce(ctx, out, e)
}
