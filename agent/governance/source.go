package governance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"repute"
)

// Doer sends HTTP requests. It decides what may be reached and MUST check redirects the same way.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// URLSource reads a policy from an https URL.
type URLSource struct {
	url    string
	client Doer
}

// NewURLSource checks the URL. repute.ErrInvalid: it is no https URL.
func NewURLSource(text string, client Doer) (*URLSource, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, repute.Invalid("policy", "is no https URL", "https://host/policy.json, or the path of a file")
	}
	return &URLSource{url: text, client: client}, nil
}

// Read implements Source.
func (s *URLSource) Read(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", repute.ErrUnavailable, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s answered with status %d", repute.ErrUnavailable, req.URL.Host, resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxFile+1))
}
