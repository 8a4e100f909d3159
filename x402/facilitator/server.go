package facilitator

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	"repute/x402"
)

// maxBody bounds the request to a facilitator and its answer, in bytes: a payment and requirements.
const maxBody = 256 << 10

// facilitatorRequest is the body of /verify and /settle (section 7).
type facilitatorRequest struct {
	X402Version  int             `json:"x402Version"`
	Payment      json.RawMessage `json:"paymentPayload"`
	Requirements json.RawMessage `json:"paymentRequirements"`
}

// NewHandler serves a facilitator: POST /verify, POST /settle and GET /supported. Payments that are
// refused are answered with 200 and the reason, requests that cannot be read with 400. 503 says
// that the same request may be sent again: the end of a settlement is not known, or the chain
// cannot be asked.
func NewHandler(f x402.Facilitator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", func(w http.ResponseWriter, r *http.Request) {
		p, req, err := readRequest(w, r)
		if err != nil {
			refusedRequest(w, err, func(reason x402.Reason, text string) any {
				return x402.Verification{InvalidReason: reason, InvalidText: text}
			})
			return
		}
		v, err := f.Verify(r.Context(), p, req)
		if err != nil {
			unavailable(w, x402.Verification{InvalidReason: x402.ReasonVerify,
				InvalidText: x402.ErrUnavailable.Error()})
			return
		}
		answer(w, http.StatusOK, v)
	})
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) {
		p, req, err := readRequest(w, r)
		if err != nil {
			refusedRequest(w, err, func(reason x402.Reason, text string) any {
				return x402.Settlement{ErrorReason: reason, ErrorText: text}
			})
			return
		}
		s, err := f.Settle(r.Context(), p, req)
		if p.Version == x402.V1 {
			if id, err := x402.ChainOf(s.Network); err == nil && x402.Slug(id) != "" {
				s.Network = x402.Slug(id)
			}
		}
		if err != nil {
			unavailable(w, x402.Settlement{ErrorReason: x402.ReasonSettle, ErrorText: x402.ErrUnknownEnd.Error(),
				Network: req.Network})
			return
		}
		answer(w, http.StatusOK, s)
	})
	mux.HandleFunc("GET /supported", func(w http.ResponseWriter, r *http.Request) {
		s, err := f.Supported(r.Context())
		if err != nil {
			unavailable(w, struct{}{})
			return
		}
		answer(w, http.StatusOK, s)
	})
	return mux
}

// readRequest reads the body of /verify or /settle. The error is a *Refusal. The payment's own version decides in which
// form the requirements are read; the body's may be missing, and MUST NOT contradict it.
func readRequest(w http.ResponseWriter, r *http.Request) (p x402.Payment, req x402.Requirements, err error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return p, req, x402.Refuse(x402.ReasonInvalidPayload, "the content type is not application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return p, req, x402.Refuse(x402.ReasonInvalidPayload, "the body cannot be read, or has more than %d bytes",
			maxBody)
	}
	var body facilitatorRequest
	if err := x402.UnmarshalObject(raw, &body); err != nil {
		return p, req, err
	}
	if err := x402.UnmarshalObject(body.Payment, &p); err != nil {
		return p, req, err
	}
	if body.X402Version != p.Version && body.X402Version != 0 {
		return p, req, x402.Refuse(x402.ReasonInvalidVersion, "x402Version is %d, of the payment %d", body.X402Version,
			p.Version)
	}
	req, err = x402.UnmarshalRequirements(body.Requirements, p.Version)
	return p, req, err
}

// refusedRequest answers a request that cannot be read.
func refusedRequest(w http.ResponseWriter, err error, made func(x402.Reason, string) any) {
	var refused *x402.Refusal
	if !errors.As(err, &refused) {
		refused = &x402.Refusal{Reason: x402.ReasonInvalidPayload}
	}
	answer(w, http.StatusBadRequest, made(refused.Reason, refused.Message))
}

// retryAfter is when a caller may ask again, in seconds.
const retryAfter = "2"

// unavailable answers that the same request may be sent again. The cause is not told: it names nodes of the operator.
func unavailable(w http.ResponseWriter, v any) {
	w.Header().Set("Retry-After", retryAfter)
	answer(w, http.StatusServiceUnavailable, v)
}

// answer writes JSON.
func answer(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // the caller is gone
}
