package agents

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/manifest"
	"repute/orchestrator/outbound"
	"repute/resolver"
)

// maxFile bounds the files that agents read, in bytes.
const maxFile = 256 << 10

// publish returns a data URI of a file, which needs no host. hash is keccak256 of the bytes. Equal files have equal
// URIs, as json.Marshal sorts the members of maps: a repeated method sends the same transaction.
func publish(file any) (uri string, hash common.Hash, err error) {
	body, err := json.Marshal(file)
	if err != nil {
		return "", hash, err
	}
	return "data:application/json;base64," + base64.StdEncoding.EncodeToString(body), crypto.Keccak256Hash(body), nil
}

// fetch reads a file: out of the URI itself, or over HTTP through the guard. IPFS and others are not read, since
// the runtime of an agent in another process offers no such call.
func fetch(ctx context.Context, w World, uri string) ([]byte, error) {
	switch ref := resolver.Classify(uri); ref.Kind {
	case resolver.KindData, resolver.KindJSON:
		return resolver.Inline(uri, maxFile)
	case resolver.KindHTTPS, resolver.KindHTTP:
		answer, err := w.HTTP(ctx, outbound.HTTPRequest{URL: ref.URL})
		switch {
		case err != nil:
			return nil, err
		case answer.Status != 200:
			return nil, fmt.Errorf("%.200s answered status %d: %w", ref.URL, answer.Status, repute.ErrUnavailable)
		case len(answer.Body) > maxFile:
			return nil, repute.Invalid("uri", fmt.Sprintf("leads to %d bytes", len(answer.Body)),
				fmt.Sprintf("at most %d", maxFile))
		}
		return answer.Body, nil
	default:
		return nil, repute.Invalid("uri", fmt.Sprintf("is %s, which this agent does not read", ref.Kind),
			"data: or https:")
	}
}

// services returns the HTTP endpoints in an agent's registration file, in its order. What else is wrong with the
// file is not the reader's business.
func services(ctx context.Context, w World, c Chain, id repute.AgentID) ([]string, error) {
	uri, err := view(ctx, w, c.ID, c.Identity, identities.PackTokenURI(id.TokenID.ToBig()), identities.UnpackTokenURI)
	if err != nil {
		return nil, err
	}
	body, err := fetch(ctx, w, uri)
	if err != nil {
		return nil, fmt.Errorf("registration file of agent %s: %w", id.Short(), err)
	}
	file, _ := manifest.Parse(body)
	var out []string
	for _, s := range file.Services {
		if k := resolver.Classify(s.Endpoint).Kind; k == resolver.KindHTTPS || k == resolver.KindHTTP {
			out = append(out, s.Endpoint)
		}
	}
	return out, nil
}
