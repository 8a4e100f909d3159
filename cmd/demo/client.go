package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Bounds of one question to the demo's own API. They are generous, because the demo often runs on a machine that is
// busy building.
const (
	callTimeout = 20 * time.Second
	maxAnswer   = 16 << 20
)

// getJSON reads a route that needs no token.
func getJSON(ctx context.Context, url string, into any) error {
	return ask(ctx, http.MethodGet, url, "", nil, into)
}

// call asks the demo's own API, with the token of a role.
func (d *demo) call(ctx context.Context, role, method, path string, body, into any) error {
	return ask(ctx, method, d.base+path, d.tokens[role], body, into)
}

// ask sends body as JSON, unless it is nil, and reads the answer into into, unless that is nil.
// Any status of 300 and above is an error with the answer's text.
func ask(ctx context.Context, method, url, token string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return err
	case res.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}

// printJSON writes one value, indented.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
