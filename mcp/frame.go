package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Codes of JSON-RPC 2.0.
const (
	codeParse   = -32700
	codeRequest = -32600
	codeMethod  = -32601
)

// frameError is an error of JSON-RPC 2.0; ID is null where none could be read. Clients of JSON-RPC read nothing but
// such messages, whatever the HTTP status.
type frameError struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// framed answers malformed messages with a JSON-RPC error; the SDK answers them in plain text. The
// HTTP status stays. It reads the whole body, which is bounded, because the answer needs the id in it after the SDK has
// read it.
func framed(next http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
		if err != nil {
			refuseFrame(w, http.StatusBadRequest, nil, "")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body)) // a byte too many is refused by next
		p := &plainText{ResponseWriter: w}
		next.ServeHTTP(p, r)
		if p.status != 0 {
			refuseFrame(w, p.status, body, strings.TrimSpace(p.text.String()))
		}
	})
}

// refuseFrame writes the JSON-RPC error for a malformed message. The id is repeated only for a method that is not
// known; in other cases the message is not trusted to have one.
func refuseFrame(w http.ResponseWriter, status int, body []byte, text string) {
	var asked struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
	}
	e := frameError{Version: "2.0"}
	e.Error.Code, e.Error.Message = codeRequest, text
	err := json.Unmarshal(body, &asked)
	switch {
	case status == http.StatusBadRequest && !json.Valid(body):
		e.Error.Code, e.Error.Message = codeParse, "the message is no JSON"
	case err == nil && asked.Version == "2.0" && strings.HasSuffix(text, "unsupported"):
		e.Error.Code = codeMethod
		e.Error.Message = fmt.Sprintf("method: %.60q is not known, e.g. tools/list or tools/call", asked.Method)
		e.ID = asked.ID
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e) // the caller went away
}

// plainText withholds an answer that is an error in plain text. Answers of other types, and those that are no error,
// pass unchanged and without a copy.
type plainText struct {
	http.ResponseWriter
	status int // status of the withheld answer; 0: none
	text   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (p *plainText) WriteHeader(status int) {
	if status >= 400 && strings.HasPrefix(p.Header().Get("Content-Type"), "text/plain") {
		p.status = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (p *plainText) Write(b []byte) (int, error) {
	if p.status != 0 {
		return p.text.Write(b)
	}
	return p.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (p *plainText) Unwrap() http.ResponseWriter { return p.ResponseWriter }
