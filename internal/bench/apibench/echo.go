package apibench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// ServeConstant serves a constant body of a size until ctx ends, by the router that the product uses and nothing else.
// It prints its address as the first line.
func ServeConstant(ctx context.Context, out io.Writer, bytesOfBody int) error {
	body := bytes.Repeat([]byte("x"), bytesOfBody)
	e := echo.New()
	e.GET("/*", func(c echo.Context) error { return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body) })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // its clients are gone
	defer stop()
	if _, err := fmt.Fprintln(out, listener.Addr()); err != nil {
		return fmt.Errorf("print the address: %w", err)
	}
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
