// Package openai asks a server for vectors of texts by the embeddings API of OpenAI, which most
// servers of models have: POST {base}/embeddings.
//
// The server is not trusted: what it answers is bounded in time and size, and has to be one finite
// vector of the configured dimensions for each text. Redirects are not followed.
//
// New returns an Embedder, which fits intent.New and may be used concurrently. It sends one request for each call of
// Embed, and does not retry: an error that may pass is repute.ErrUnavailable or repute.ErrLimited, and the caller
// decides. The key is in no error and in nothing that prints an Embedder, also not where the server repeats it.
//
// Vectors are compared only with those of the same ID, which is the name of the model and its dimensions. A server that
// puts another model behind the same name gives vectors that do not fit those that are stored.
package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"repute"
)

const (
	defaultTimeout = 30 * time.Second
	maxDim         = 4096
	maxModel       = 200 // bytes
	// maxNumber is how many bytes a number of an answer may take, with its separator.
	maxNumber = 32
	// maxFrame is how many bytes an answer may take besides its numbers.
	maxFrame = 64 << 10
	// maxMessage is how many bytes of the server's explanation an error shows.
	maxMessage = 200
)

// Config describes a server.
type Config struct {
	URL     string        // the base, e.g. "https://api.openai.com/v1"
	Model   string        // as the server names it
	Dim     int           // dimensions of the model's vectors
	Key     string        // sent as bearer token; "" for none
	Timeout time.Duration // of one request; 0 for 30 s
}

// Embedder asks one server. It may be used concurrently.
type Embedder struct {
	client    *http.Client
	endpoint  string
	model     string
	dim       int
	timeout   time.Duration
	authorize func(*http.Request) // not the key itself, so that printing an Embedder cannot show it
	redact    func(string) string // removes the key
}

// New returns an Embedder that sends its requests with the client. Redirects are not followed: they
// could send texts and key to a server that was not configured.
func New(client *http.Client, c Config) (*Embedder, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, repute.Invalid("url", "is not the address of a server", "use e.g. https://api.openai.com/v1")
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, repute.Invalid("url", "has a user, a query or a fragment", "give the key by itself")
	}
	if c.Model == "" || len(c.Model) > maxModel {
		return nil, repute.Invalid("model", fmt.Sprintf("has %d bytes", len(c.Model)), "1 to 200 are allowed")
	}
	if c.Dim < 1 || c.Dim > maxDim {
		return nil, repute.Invalid("dim", fmt.Sprintf("is %d", c.Dim), "1 to 4096 are allowed")
	}
	if c.Timeout < 0 || strings.ContainsAny(c.Key, "\r\n") {
		return nil, repute.Invalid("timeout or key", "is malformed", "use a positive timeout and a key of one line")
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	e := &Embedder{client: &own, endpoint: base.JoinPath("embeddings").String(), model: c.Model, dim: c.Dim,
		timeout: cmp.Or(c.Timeout, defaultTimeout)}
	e.authorize, e.redact = func(*http.Request) {}, func(s string) string { return s }
	if c.Key != "" {
		e.authorize = func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.Key) }
		e.redact = strings.NewReplacer(c.Key, "[key]").Replace
	}
	return e, nil
}

// Dim returns the number of dimensions of a vector.
func (e *Embedder) Dim() int { return e.dim }

// ID returns the model and its dimensions: some models are served with several.
func (e *Embedder) ID() string { return fmt.Sprintf("%s/%d", e.model, e.dim) }

// Embed returns one vector for each text. Empty texts, which servers refuse, have a zero vector.
// Errors of a server that may answer later are repute.ErrUnavailable or repute.ErrLimited.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var input []string
	var places []int // of the input in texts
	for i, text := range texts {
		if text == "" {
			vectors[i] = make([]float32, e.dim)
			continue
		}
		input, places = append(input, text), append(places, i)
	}
	if len(input) == 0 {
		return vectors, nil
	}
	body, err := e.ask(ctx, input)
	if err != nil {
		return nil, fmt.Errorf("embeddings of model %q: %w", e.model, err)
	}
	answered, err := e.decode(body, len(input))
	if err != nil {
		return nil, fmt.Errorf("embeddings of model %q: %w", e.model, err)
	}
	for i, v := range answered {
		vectors[places[i]] = v
	}
	return vectors, nil
}

// ask returns the body of the server's answer.
func (e *Embedder) ask(ctx context.Context, input []string) ([]byte, error) {
	request, err := json.Marshal(map[string]any{"model": e.model, "input": input, "encoding_format": "float"})
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodPost, e.endpoint, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	e.authorize(r)
	response, err := e.client.Do(r)
	if err != nil {
		return nil, failed(ctx, err)
	}
	defer response.Body.Close()
	limit := len(input)*e.dim*maxNumber + maxFrame
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	if err != nil {
		return nil, failed(ctx, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, e.refused(response.StatusCode, body)
	}
	if len(body) > limit {
		return nil, fmt.Errorf("the answer is larger than %d bytes", limit)
	}
	return body, nil
}

// failed returns the error of a request without an answer. If the caller gave up, the server is not
// to blame.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
}

// refused returns the error of an answer with another status than 200.
func (e *Embedder) refused(status int, body []byte) error {
	var answer struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(body, &answer) // of another shape: no message
	err := fmt.Errorf("the server answers with status %d", status)
	if message := e.redact(answer.Error.Message); message != "" {
		err = fmt.Errorf("%w: %.*q", err, maxMessage, message)
	}
	switch {
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("%w: %w", repute.ErrLimited, err)
	case status >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	return err
}

// decode returns the vectors of an answer in the order of the texts.
func (e *Embedder) decode(body []byte, count int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not one of the embeddings API: %w", err)
	}
	if len(answer.Data) != count {
		return nil, fmt.Errorf("the answer has %d vectors for %d texts", len(answer.Data), count)
	}
	vectors := make([][]float32, count)
	for _, d := range answer.Data {
		if d.Index == nil || *d.Index < 0 || *d.Index >= count || vectors[*d.Index] != nil {
			return nil, fmt.Errorf("the answer does not have one vector for each of %d texts", count)
		}
		if len(d.Embedding) != e.dim {
			return nil, fmt.Errorf("a vector has %d dimensions, %d are configured", len(d.Embedding), e.dim)
		}
		vectors[*d.Index] = d.Embedding
	}
	return vectors, nil
}
