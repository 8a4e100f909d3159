package finder

import (
	"context"
	"time"

	"repute"
	"repute/intent"
)

// paced is a model that pauses after each text, so that what it computes in the background leaves the processors to
// requests. A text takes some milliseconds, and a first start or a crawl brings thousands.
type paced struct {
	intent.Embedder
	rest int // times as long as the text took
}

// Embed implements intent.Embedder.
func (p paced) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for i := range texts {
		began := time.Now()
		one, err := p.Embedder.Embed(ctx, texts[i:i+1])
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
		repute.Pause(ctx, time.Since(began)*time.Duration(p.rest))
	}
	return out, nil
}
