package a2aserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"repute/agent/envelope"
	"repute/agent/serve"
	"repute/internal/httpapi"
	"repute/x402"
)

// Path is where the agent answers.
const Path = "/a2a"

// Mounts are the tasks over HTTP.
func (s *Server) Mounts() []serve.Mount {
	return []serve.Mount{{Path: Path, Methods: []string{http.MethodPost}, Handler: s.Handler(), Name: "A2A",
		Endpoint: "/.well-known/agent-card.json", Version: string(a2a.Version)}}
}

// headersExtensions are the names by which clients of version 1.0 and of older ones ask for extensions.
func headersExtensions() []string { return []string{a2a.SvcParamExtensions, "X-A2A-Extensions"} }

// Handler answers JSON-RPC by POST, in version 1.0 and, for the methods of its names, in 0.3.
//
// Methods of version 0.3 have a slash in their names, and those of 1.0 have none. The body is read here once, within
// MaxBody, because both need it; the library answers what is no JSON.
func (s *Server) Handler() http.Handler {
	now, old := a2asrv.NewJSONRPCHandler(s), a2av0.NewJSONRPCHandler(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, s.o.MaxBody+1))
		switch {
		case err != nil:
			httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request",
				"the request body cannot be read").Write(w)
			return
		case int64(len(body)) > s.o.MaxBody:
			httpapi.NewError(http.StatusRequestEntityTooLarge, "too_large", "Request too large",
				"the request body is larger than the server allows").Write(w)
			return
		}
		for _, name := range headersExtensions() {
			if strings.Contains(r.Header.Get(name), x402.A2AExtensionURI) {
				w.Header().Set(name, x402.A2AExtensionURI)
			}
		}
		var call struct {
			Method string `json:"method"`
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := json.Unmarshal(body, &call); err == nil && strings.Contains(call.Method, "/") { // message/send
			old.ServeHTTP(w, r)
			return
		}
		now.ServeHTTP(w, r)
	})
}

// Card is the agent card as JSON, for clients of 1.0 and 0.3, of an agent that is reached at a URL.
//
// The skills are in the order of the router's services. The card is the same for both versions, which the library's
// producer writes into one object.
func (s *Server) Card(ctx context.Context, base string) (json.RawMessage, error) {
	const media = "application/json"
	paid, skills := false, []a2a.AgentSkill{}
	for _, one := range s.router.Services() {
		d := one.Definition()
		skill := a2a.AgentSkill{ID: d.Name, Name: d.Name, Description: d.Description, Tags: []string{"erc-8004"},
			InputModes: []string{media}, OutputModes: []string{media}}
		if price := envelope.Pricing(one); price != nil {
			paid, skill.Tags = true, append(skill.Tags, "x402")
			skill.Description = strings.TrimSpace(d.Description + " Costs " + one.Price.Amount + " " +
				one.Price.Currency + ".")
		}
		skills = append(skills, skill)
	}
	card := &a2a.AgentCard{Name: s.o.Name, Description: s.o.Description, Version: s.router.Version(),
		IconURL: s.o.Image,
		Skills:  skills, DefaultInputModes: []string{media}, DefaultOutputModes: []string{media},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(trimmed(base)+Path,
			a2a.TransportProtocolJSONRPC),
			{URL: trimmed(base) + Path, ProtocolBinding: a2a.TransportProtocolJSONRPC, ProtocolVersion: a2av0.Version}}}
	card.Capabilities.Streaming = true
	if paid {
		card.Capabilities.Extensions = []a2a.AgentExtension{{URI: x402.A2AExtensionURI,
			Description: "Payments of tasks by x402: the data of a payment is of version 2."}}
	}
	producer, ok := a2av0.NewStaticAgentCardProducer(card).(a2asrv.AgentCardJSONProducer)
	if !ok {
		return json.Marshal(card)
	}
	raw, err := producer.CardJSON(ctx)
	return slices.Clip(raw), err
}
