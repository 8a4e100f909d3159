package indexclient

import (
	"context"
	"fmt"
	"math"
	"net/url"

	"repute"
)

// Found is an offer that a search found.
type Found struct {
	Kind       string  `json:"kind"`   // intent, skill, tool or class
	Domain     string  `json:"domain"` // whose manifest has the intent; "" for an offer of agents
	Agent      string  `json:"agent"`  // that offers a skill, tool or class; "" for an intent
	Name       string  `json:"name"`
	Score      float64 `json:"score"`
	Similarity float64 `json:"similarity"` // of the meanings; 0 where words alone were compared
}

// Intents are the answer to a search.
type Intents struct {
	Items  []Found `json:"items"`  // the best first
	Margin float64 `json:"margin"` // score of the first less that of the next; 0 where words alone were compared
	Unsure bool    `json:"unsure"` // the first match may not be what is meant
}

// Intents searches what services and agents offer, by meaning. kind is one of Found, "" for all. Only indexes of this
// program answer it: others are repute.ErrNotFound. The texts of the answer are untrusted.
func (c *Client) Intents(ctx context.Context, text, kind string, limit int) (Intents, error) {
	query := url.Values{"q": {text}, "limit": {fmt.Sprint(limit)}}
	if kind != "" {
		query.Set("kind", kind)
	}
	var out Intents
	if err := c.get(ctx, "/intents", query, &out); err != nil {
		return Intents{}, err
	}
	for _, f := range out.Items {
		if f.Name == "" || f.Domain == "" && f.Agent == "" || math.Abs(f.Score) > 100 {
			return Intents{}, fmt.Errorf("index: GET /intents has an item without a name, or of nobody: %w",
				repute.ErrUnavailable)
		}
	}
	out.Items = out.Items[:min(len(out.Items), limit)]
	return out, nil
}
