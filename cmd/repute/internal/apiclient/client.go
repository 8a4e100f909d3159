// Package apiclient is the client of commands that ask a running server over HTTP: those of tasks, runs and agents with
// --orchestrator, and those of webhooks.
//
// A [Client] is the value of two flags. [Client.Call] is one request with a JSON body and a JSON answer, within 30
// seconds and 16 MiB; [Client.Request] is for callers that read a stream. An answer that is no success becomes an error
// of the kind that the same failure has on the database, so that a command exits with the same code either way. Texts
// of the server are made safe for a terminal. The token is sent to the given server and, as net/http does, after
// redirects to its subdomains.
package apiclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/cli"
)

// Client calls a server over HTTP.
type Client struct {
	// URL is that of the server, without a path; empty: the command has none.
	URL string
	// Token is a bearer token; empty: REPUTE_TOKEN of the environment.
	Token string
}

// Flags adds the flags --orchestrator and --token.
func (e *Client) Flags(f *pflag.FlagSet) {
	f.StringVar(&e.URL, "orchestrator", "", "URL of the orchestrator to ask, in place of a database")
	f.StringVar(&e.Token, "token", "", "bearer token, one of orchestrator.tokens (REPUTE_TOKEN)")
}

// Request returns a request to a route with the token and a JSON body. Its errors never quote the URL, because it may
// hold a password. The body is sent as it is marshaled; nil sends none.
func (e *Client) Request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var text io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, repute.Invalid("input", "is no JSON", "any JSON value")
		}
		text = bytes.NewReader(b)
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, repute.Invalid("orchestrator", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(e.URL, "/")+path, text)
	if err != nil {
		return nil, repute.Invalid("orchestrator", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	req.Header.Set("Content-Type", "application/json")
	if token := cmp.Or(e.Token, os.Getenv("REPUTE_TOKEN")); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req, nil
}

// Call requests a route and decodes its answer into a value, unless that is nil. An answer of more than 16 MiB is cut,
// and is then no JSON. A request that may have reached the server is not repeated: the caller decides whether it may
// be.
func (e *Client) Call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := e.Request(ctx, method, path, body)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("orchestrator: does not answer (the URL of repute serve in --orchestrator): %w: %w",
			repute.ErrUnavailable, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	case res.StatusCode >= 300:
		return Refusal(res.StatusCode, answer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return repute.Invalid("orchestrator", "answers something else than an orchestrator does",
			"the URL of repute serve, without a path")
	}
	return nil
}

// Refusal returns the error in an answer of an orchestrator. The kinds are repute.ErrInvalid, which the program exits
// with 2 for, ErrConflict, ErrNotFound, and ErrUnavailable for failures of the server and for a rate limit, after which
// the same command may succeed. A 403 is invalid input: another token is needed.
func Refusal(status int, answer []byte) error {
	var said struct{ Detail, Hint string }
	_ = json.Unmarshal(answer, &said) // for another answer the status is enough
	if status == http.StatusUnauthorized {
		return repute.Invalid("token", "is missing or not known to the orchestrator",
			"--token, or REPUTE_TOKEN in the environment: one of its orchestrator.tokens")
	}
	reason := cli.Visible(cmp.Or(said.Detail, http.StatusText(status)))
	switch {
	case status == http.StatusNotFound && said.Hint != "":
		return fmt.Errorf("%s: %w (%s)", reason, repute.ErrNotFound, cli.Visible(said.Hint))
	case status == http.StatusNotFound:
		return fmt.Errorf("%s: %w", reason, repute.ErrNotFound)
	case status == http.StatusConflict:
		return repute.Conflict("%s", reason)
	case status >= 500 || status == http.StatusTooManyRequests:
		return fmt.Errorf("%s: %w", reason, repute.ErrUnavailable)
	}
	return repute.Invalid("orchestrator", "refuses: "+reason,
		cli.Visible(cmp.Or(said.Hint, fmt.Sprintf("it answered %d", status))))
}
