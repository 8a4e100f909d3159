package x402

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
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
func NewHandler(f Facilitator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /verify", func(w http.ResponseWriter, r *http.Request) {
		p, req, err := readRequest(w, r)
		if err != nil {
			refusedRequest(w, err, func(reason Reason, text string) any {
				return Verification{InvalidReason: reason, InvalidText: text}
			})
			return
		}
		v, err := f.Verify(r.Context(), p, req)
		if err != nil {
			unavailable(w, Verification{InvalidReason: ReasonVerify, InvalidText: ErrUnavailable.Error()})
			return
		}
		answer(w, http.StatusOK, v)
	})
	mux.HandleFunc("POST /settle", func(w http.ResponseWriter, r *http.Request) {
		p, req, err := readRequest(w, r)
		if err != nil {
			refusedRequest(w, err, func(reason Reason, text string) any {
				return Settlement{ErrorReason: reason, ErrorText: text}
			})
			return
		}
		s, err := f.Settle(r.Context(), p, req)
		if p.Version == V1 {
			if id, err := ChainOf(s.Network); err == nil && Slug(id) != "" {
				s.Network = Slug(id)
			}
		}
		if err != nil {
			unavailable(w, Settlement{ErrorReason: ReasonSettle, ErrorText: ErrUnknownEnd.Error(), Network: req.Network})
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

// readRequest reads the body of /verify or /settle. The error is a *Refusal.
func readRequest(w http.ResponseWriter, r *http.Request) (p Payment, req Requirements, err error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return p, req, refuse(ReasonInvalidPayload, "the content type is not application/json")
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return p, req, refuse(ReasonInvalidPayload, "the body cannot be read, or has more than %d bytes", maxBody)
	}
	var body facilitatorRequest
	if err := unmarshal(raw, &body); err != nil {
		return p, req, err
	}
	if err := unmarshal(body.Payment, &p); err != nil {
		return p, req, err
	}
	if body.X402Version != p.Version && body.X402Version != 0 {
		return p, req, refuse(ReasonInvalidVersion, "x402Version is %d, of the payment %d", body.X402Version, p.Version)
	}
	req, err = UnmarshalRequirements(body.Requirements, p.Version)
	return p, req, err
}

// refusedRequest answers a request that cannot be read.
func refusedRequest(w http.ResponseWriter, err error, made func(Reason, string) any) {
	var refused *Refusal
	if !errors.As(err, &refused) {
		refused = &Refusal{Reason: ReasonInvalidPayload}
	}
	answer(w, http.StatusBadRequest, made(refused.Reason, refused.Message))
}

// retryAfter is when a caller may ask again, in seconds.
const retryAfter = "2"

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
