package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"net/http"

	"repute"

	"github.com/danielgtaylor/huma/v2"
)

// The inputs of the routes that give whole texts.
type (
	uriInput struct {
		AgentPath
		AgentQuery
	}
	uriPairInput struct {
		PairPath
		AgentQuery
	}
	uriChainInput struct {
		ChainAgentPath
		AgentQuery
	}
	textInput struct {
		AgentPath
		TextQuery
	}
	textPairInput struct {
		PairPath
		TextQuery
	}
	textChainInput struct {
		ChainAgentPath
		TextQuery
	}
	tagInput struct {
		Request
		Hash string `path:"hash" pattern:"^(0x)?[0-9a-fA-F]{64}$" doc:"keccak256 of the tag, 64 hexadecimal digits with or without 0x"`
	}
)

// TextQuery names a text of a log.
type TextQuery struct {
	Request
	Block    Number `path:"block" minimum:"0" doc:"of the log"`
	LogIndex Number `path:"logIndex" minimum:"0" maximum:"2147483647" doc:"of the log"`
	Field    string `path:"field" enum:"tag1,tag2,endpoint,feedbackURI,responseURI,requestURI,tag,metadataKey,metadataValue" doc:"the text, by its name in the event"`
}

// Query is the query itself, also where it is embedded.
func (q *TextQuery) Query() *TextQuery { return q }

// mountTexts adds the routes that answers name where they cut a text.
func (a *API) mountTexts() {
	const uri = "The whole URI of an agent, as text or octets"
	onText[uriInput](a, "/agents/{id}/uri", "get-uri", uri, a.wholeURI)
	onText[uriPairInput](a, "/agents/{chainId}/{tokenId}/uri", "get-uri-by-token", uri, a.wholeURI)
	onText[uriChainInput](a, "/chains/{chainId}/agents/{id}/uri", "get-chain-uri", uri, a.wholeURI)

	const text = "The whole of a text that an agent got by a log, as text or octets"
	onText[textInput](a, "/agents/{id}/texts/{block}/{logIndex}/{field}", "get-text", text, a.wholeText)
	onText[textPairInput](a, "/agents/{chainId}/{tokenId}/texts/{block}/{logIndex}/{field}", "get-text-by-token", text, a.wholeText)
	onText[textChainInput](a, "/chains/{chainId}/agents/{id}/texts/{block}/{logIndex}/{field}", "get-chain-text", text, a.wholeText)

	huma.Register(a.huma, describeText(a, "/tags/{hash}", "get-tag", "A whole tag, as text or octets"), func(ctx context.Context, in *tagInput) (*rawOutput, error) {
		return a.serveText(ctx, &in.Request, func() ([]byte, error) {
			hash, err := parseSHA256(in.Hash)
			if err != nil {
				return nil, repute.Invalid("hash", "not a keccak256", "64 hexadecimal digits, with or without 0x")
			}
			return a.db.Tag(ctx, hash)
		})
	})
}

func describeText(a *API, path, id, summary string) huma.Operation {
	op := describeOperation(a, http.MethodGet, path, id, summary)
	op.Responses["200"] = &huma.Response{Description: "The bytes as they are on the chain.", Content: map[string]*huma.MediaType{plainType: {}, octetType: {}}}
	return op
}

// onText mounts a route that gives a text of one agent.
func onText[I, Q any, P interface {
	*I
	Ref() (repute.AgentRef, error)
	Query() *Q
	request() *Request
}](a *API, path, id, summary string, read func(context.Context, repute.AgentRef, *Q) ([]byte, error)) {
	huma.Register(a.huma, describeText(a, path, id, summary), func(ctx context.Context, in *I) (*rawOutput, error) {
		return a.serveText(ctx, P(in).request(), func() ([]byte, error) {
			ref, err := P(in).Ref()
			if err != nil {
				return nil, err
			}
			return read(ctx, ref, P(in).Query())
		})
	})
}

// serveText gives bytes of strangers, never as a page and never as anything that a
// browser reads.
func (a *API) serveText(ctx context.Context, r *Request, read func() ([]byte, error)) (*rawOutput, error) {
	if r.err != nil {
		return nil, a.fail(ctx, r.err)
	}
	body, err := read()
	if err != nil {
		return nil, a.fail(ctx, err)
	}
	kind := plainType
	if plainText(body) == nil {
		kind = octetType
	}
	sum := sha256.Sum256(body)
	out := &rawOutput{
		Status: http.StatusOK, ContentType: kind, ETag: fmt.Sprintf(`"%x"`, sum[:18]), CacheControl: asked,
		Policy: "default-src 'none'; frame-ancestors 'none'; sandbox", Disposition: `attachment; filename="text.txt"`, Body: body,
	}
	if matches(r.IfNoneMatch, out.ETag) {
		out.Status, out.Body = http.StatusNotModified, nil
	}
	return out, nil
}

func (a *API) wholeURI(ctx context.Context, ref repute.AgentRef, q *AgentQuery) ([]byte, error) {
	at, err := parseAt(q.At)
	if err != nil {
		return nil, err
	}
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	agent, _, err := a.db.Agent(ctx, id, at)
	if err != nil {
		return nil, unknownAgent(err)
	}
	if agent.Document.Status == repute.DocumentDenied {
		return nil, &repute.DeniedError{Reason: agent.Document.Detail}
	}
	return []byte(agent.URI), nil
}

func (a *API) wholeText(ctx context.Context, ref repute.AgentRef, q *TextQuery) ([]byte, error) {
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
	id, err := a.resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	text, err := a.db.Text(ctx, id, block, log, q.Field)
	return text, missing(err, "answers name the path of each text that they cut, as whole")
}

// parsePlace reads a block or the index of a log.
func parsePlace(field, s string) (uint64, error) {
	at, err := parseAt(s)
	if err != nil || at.Finality != "" {
		return 0, repute.Invalid(field, "not a place on the chain", "a number, as in the path that answers name")
	}
	return at.Block, nil
}
