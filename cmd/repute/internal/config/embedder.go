package config

import (
	"net/http"
	"os"
	"strconv"

	"repute"
	"repute/intent"
	"repute/intent/openai"
	"repute/intent/sentence"
)

// Embedder returns the model that compares meanings: the one that is part of the program, or that of a server with
// OpenAI's API where the environment names one. A server sees the texts of all searches, so that no file configures it:
// REPUTE_EMBEDDER_URL, REPUTE_EMBEDDER_MODEL, REPUTE_EMBEDDER_DIM and REPUTE_EMBEDDER_KEY.
func (c *Config) Embedder() (intent.Embedder, error) {
	base := os.Getenv("REPUTE_EMBEDDER_URL")
	if base == "" {
		return sentence.New()
	}
	dim, err := strconv.Atoi(os.Getenv("REPUTE_EMBEDDER_DIM"))
	if err != nil {
		return nil, repute.Invalid("REPUTE_EMBEDDER_DIM", "not a number",
			"the dimensions of the model's vectors, e.g. 1536")
	}
	return openai.New(&http.Client{}, openai.Config{URL: base, Model: os.Getenv("REPUTE_EMBEDDER_MODEL"), Dim: dim,
		Key: os.Getenv("REPUTE_EMBEDDER_KEY")})
}
