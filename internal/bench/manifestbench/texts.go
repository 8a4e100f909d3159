package manifestbench

import (
	"fmt"

	"repute/intent"
)

// offers are a few hundred intents that mean something: each verb with each thing. Neighbors share a verb or a thing,
// so that a search has to tell similar offers apart.
func offers() (out []intent.Item) {
	verbs := []string{"search", "book", "cancel", "translate", "summarize", "review", "compare", "track", "order",
		"rate",
		"predict", "verify", "convert", "share", "rent"}
	things := []string{"flight", "hotel", "contract", "invoice", "weather report", "source code", "photo", "recipe",
		"parcel",
		"song", "medical record", "bank transfer", "news article", "concert ticket", "used car", "house",
		"language course",
		"tax return", "football match", "garden plant"}
	for _, verb := range verbs {
		for i, thing := range things {
			out = append(out, intent.Item{ID: fmt.Sprintf("%s-%d", verb, i), Kind: intent.KindIntent,
				Name: fmt.Sprintf("%s_%d", verb, i), Description: verb + " a " + thing + " for me"})
		}
	}
	return out
}

// typical is a manifest as services publish it, with a place for its DID and its key: three intents, x402 on two
// networks, two commitments.
const typical = `{
  "version": "1.4",
  "origin": "api.example.com",
  "payout_address": "0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
  "display_name": "Example Intelligence",
  "description": "Analysis of documents and images with payments for each call. No account is needed.",
  "identity": {"did": %q, "public_key": %q},
  "payments": {"x402": {"networks": [
    {"network": "base", "asset": "USDC", "contract": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"},
    {"network": "arbitrum", "asset": "USDC", "contract": "0xaf88d065e77c8cC2239327C5EDb3A432268e5831"}]}},
  "intents": [
    {"name": "analyze_document", "description": "Extracts the clauses of a contract and writes a summary of them.",
     "endpoint": "/api/v1/analyze", "method": "POST",
     "parameters": {"document_url": {"type": "string", "required": true, "description": "URL of the document"},
                    "analysis_type": {"type": "string", "enum": ["summary", "risk", "full"], "default": "full"}},
     "price": {"amount": 0.50, "currency": "USDC", "model": "per_call", "network": ["base", "arbitrum"]}},
    {"name": "generate_images", "description": "Makes images from a description in words; more images cost more.",
     "endpoint": "/api/v1/generate", "method": "POST",
     "parameters": {"prompt": {"type": "string", "required": true}, "count": {"type": "integer", "default": 1}},
     "price": {"amount": 0.10, "currency": "USDC", "model": "per_unit", "unit_param": "count"}},
    {"name": "search_reports", "description": "Searches public reports by words, sector and year.",
     "parameters": {"query": {"type": "string", "required": true}}}
  ],
  "commitments": {"schema_version": "1.0", "entries": [
    {"type": "latency_bound", "constraint": "p99 < 500ms", "verifiable": true},
    {"type": "uptime_sla", "constraint": "99.9%% monthly uptime", "verifiable": true}]}
}
`
