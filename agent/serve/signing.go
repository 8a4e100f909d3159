package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"repute/internal/httpapi"
)

// recorder keeps an answer until it is signed.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter. The first status counts.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}

// signing signs the answers of a handler.
func (s *surface) signing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.mounted(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		n := &note{}
		in := r.WithContext(context.WithValue(r.Context(), noteKey{}, n))
		in.Header = r.Header.Clone()
		in.Header.Del("Accept-Encoding") // what is signed is what is sent
		answer := &recorder{header: w.Header()}
		next.ServeHTTP(answer, in)
		answer.WriteHeader(http.StatusOK)
		body := answer.body.Bytes()
		if strings.HasPrefix(answer.header.Get("Content-Type"), httpapi.ProblemType) {
			body = named(body)
		}
		if !limited(answer, n) {
			if err := s.sign(r.Context(), answer, n, body); err != nil {
				s.server.Fail(r.Context(), err).Write(w)
				return
			}
		}
		answer.header.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(answer.status)
		_, _ = w.Write(body) // the caller may be gone
	})
}

// limited reports whether an answer refuses a caller that asks too often, before anything was done. Such an answer is
// not signed: a signature costs more than the rest of the answer, and money where a service keeps the key. Otherwise a
// caller that floods the agent would decide how many signatures are made.
func limited(answer *recorder, n *note) bool {
	return answer.status == http.StatusTooManyRequests && n.metadata == "" && n.signed == nil
}

// sign sets the headers of the signature.
func (s *surface) sign(ctx context.Context, answer *recorder, n *note, body []byte) error {
	signature := n.signed
	if signature == nil {
		if n.metadata == "" {
			n.metadata = fmt.Sprintf(`{"status":%d}`, answer.status)
		}
		var err error
		if signature, err = s.router.Sign(context.WithoutCancel(ctx), n.task, body, n.metadata); err != nil {
			return err
		}
	}
	signature.Write(answer.header, s.router.Version())
	return nil
}

// named adds to a problem the members that clients of the specification read.
func named(body []byte) []byte {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return body
	}
	members["error"], members["message"] = members["code"], members["detail"]
	out, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return out
}
