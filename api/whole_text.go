package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/api/answers"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/query"
)

// Inputs of the routes that return a text in full which other answers cut.
type (
	textInput struct {
		answers.AgentPath
		answers.Request
		Block    httpapi.Number `path:"block" minimum:"0" doc:"of the log"`
		LogIndex httpapi.Number `path:"logIndex" minimum:"0" maximum:"2147483647" doc:"of the log"`
		Field    string         `path:"field" enum:"tag1,tag2,endpoint,feedbackURI,responseURI,requestURI,tag,metadataKey,metadataValue" doc:"the text, by its name in the event"`
	}
	tagInput struct {
		answers.Request
		Hash string `path:"hash" pattern:"^(0x)?[0-9a-fA-F]{64}$" doc:"keccak256 of the tag, 64 hexadecimal digits with or without 0x"`
	}
)

// mountTexts adds the routes that answers name where they cut a text.
func (a *API) mountTexts() {
	onAgent(a, "/uri", "get-uri",
		"Returns the whole URI of an agent, which other answers cut when it is long", a.wholeURI, asText)
	onAgent(a, "/texts/{block}/{logIndex}/{field}", "get-text",
		"Returns the whole of a text of one event, which other answers cut when it is long", a.wholeText, asText)
	op := describeOperation(a, "/tags/{hash}", "get-tag",
		"Returns a whole tag by its keccak256, which other answers cut when it is long")
	asText(&op)
	register(a, op, a.wholeTag)
}

// asText describes an operation that returns a text of the chain.
func asText(op *huma.Operation) {
	op.Responses["200"] = &huma.Response{Description: "The bytes as they are on the chain.",
		Content: map[string]*huma.MediaType{plainType: {Example: "https://agent.example/agent.json"}, octetType: {}}}
}

// textOutput returns untrusted bytes with headers that keep browsers from rendering them.
func textOutput(body []byte) *rawOutput {
	kind := plainType
	if wire.PlainText(body) == nil {
		kind = octetType
	}
	sum := sha256.Sum256(body)
	return &rawOutput{
		Status: http.StatusOK, ContentType: kind, ETag: fmt.Sprintf(`"%x"`, sum[:18]), CacheControl: asked,
		Policy: "default-src 'none'; frame-ancestors 'none'; sandbox", Disposition: `attachment; filename="text.txt"`,
		Body: body,
	}
}

// wholeTag serves GET /tags/{hash}: the full tag of which answers show only the beginning.
func (a *API) wholeTag(ctx context.Context, in *tagInput) (*rawOutput, error) {
	hash, err := parseSHA256(in.Hash)
	if err != nil {
		return nil, repute.Invalid("hash", "not a keccak256", "64 hexadecimal digits, with or without 0x")
	}
	tag, err := query.Tag(ctx, a.DB, hash)
	if err != nil {
		return nil, err
	}
	return textOutput(tag), nil
}

// wholeURI serves the full URI of an agent of which answers show only the beginning.
func (a *API) wholeURI(ctx context.Context, ref repute.AgentRef, q *agentInput) (*rawOutput, error) {
	agent, _, _, err := a.agentAt(ctx, ref, q.At)
	if err != nil {
		return nil, err
	}
	if agent.Document.Status == repute.DocumentDenied {
		return nil, &repute.DeniedError{Reason: agent.Document.Detail}
	}
	return textOutput([]byte(agent.URI)), nil
}

// wholeText serves the full text of an event of which answers show only the beginning.
func (a *API) wholeText(ctx context.Context, ref repute.AgentRef, q *textInput) (*rawOutput, error) {
	block, err := parsePlace("block", string(q.Block))
	if err != nil {
		return nil, err
	}
	log, err := parsePlace("logIndex", string(q.LogIndex))
	if err == nil && log > math.MaxInt32 {
		err = repute.Invalid("logIndex", "is too large", "2147483647 at most")
	}
	if err != nil {
		return nil, err
	}
	id, err := a.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	text, err := query.Text(ctx, a.DB, id, block, log, q.Field)
	if err != nil {
		return nil, answers.Missing(err, "answers name the path of each text that they cut, as whole")
	}
	return textOutput(text), nil
}

// parsePlace reads a block or the index of a log.
func parsePlace(field, s string) (uint64, error) {
	at, err := answers.ParseAt(s)
	if err != nil || at.Finality != "" {
		return 0, repute.Invalid(field, "not a place on the chain", "a number, as in the path that answers name")
	}
	return at.Block, nil
}
