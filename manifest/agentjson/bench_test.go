package agentjson

import (
	"testing"
)

// typical is a manifest as services publish it: three intents, x402 on two networks, a bounty.
func typical() []byte {
	return []byte(`{
  "version": "1.3",
  "origin": "api.example.com",
  "payout_address": "0x71C7656EC7ab88b098defB751B7401B5f6d8976F",
  "display_name": "Example Intelligence",
  "description": "Analysis of documents and images with payments for each call. No account is needed: pay with USDC on Base or Arbitrum.",
  "payments": {
    "x402": {
      "networks": [
        {"network": "base", "asset": "USDC", "contract": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "facilitator": "https://x402.org/facilitator"},
        {"network": "arbitrum", "asset": "USDC", "contract": "0xaf88d065e77c8cC2239327C5EDb3A432268e5831", "facilitator": "https://x402.org/facilitator"}
      ]
    }
  },
  "intents": [
    {
      "name": "analyze_document",
      "description": "Extracts the clauses of a contract, names risks and writes a summary of one paragraph. Reads PDF, DOCX and plain text.",
      "endpoint": "/api/v1/analyze",
      "method": "POST",
      "parameters": {
        "document_url": {"type": "string", "required": true, "description": "URL of the document to analyze"},
        "analysis_type": {"type": "string", "required": false, "enum": ["summary", "risk", "full"], "default": "full"}
      },
      "price": {"amount": 0.50, "currency": "USDC", "model": "per_call", "network": ["base", "arbitrum"]},
      "payments": {"x402": {"direct_price": 0.50, "ticket_price": 0.40}}
    },
    {
      "name": "generate_images",
      "description": "Makes images from a description in words. Answers with a list of URLs; more images cost more.",
      "endpoint": "/api/v1/generate",
      "method": "POST",
      "parameters": {
        "prompt": {"type": "string", "required": true, "description": "What the image shows"},
        "count": {"type": "integer", "required": false, "default": 1, "description": "Number of images"}
      },
      "price": {"amount": 0.10, "currency": "USDC", "model": "per_unit", "unit_param": "count", "network": ["base", "arbitrum"]}
    },
    {
      "name": "search_reports",
      "description": "Searches public reports by words, sector and year. Answers with titles, dates and links.",
      "parameters": {"query": {"type": "string", "required": true}}
    }
  ],
  "bounty": {"type": "cpa", "rate": 0.25, "currency": "USDC"}
}
`)
}

func BenchmarkParse(b *testing.B) {
	doc := typical()
	if _, problems := Parse(doc, Options{Profile: Strict}); len(problems) > 0 {
		b.Fatal(problems)
	}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(doc, Options{Host: "api.example.com"})
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "manifests/s")
}

func BenchmarkTerms(b *testing.B) {
	m, _ := Parse(typical(), Options{})
	b.ReportAllocs()
	for b.Loop() {
		m.Terms(0)
	}
}

// Parsing and verifying a manifest of tier 3+.
func BenchmarkVerify(b *testing.B) {
	key := testKey(b, 1)
	doc, did := signedManifest(b, "example.com", key), didDocument(b, "example.com", key)
	b.ReportAllocs()
	for b.Loop() {
		m, problems := Parse(doc, Options{Host: "example.com"})
		if v := Verify(m, problems, Evidence{Host: "example.com", DIDDocument: did,
			Now: testNow()}); v.Verified != TierSigned {
			b.Fatalf("%+v", v)
		}
	}
}

// Manifests of the largest size, with as many intents as fit.
func BenchmarkParseLargest(b *testing.B) {
	doc := []byte(`{"version":"1.0","origin":"a.example","payout_address":"a","intents":[{}`)
	for len(doc) < MaxBytes-100 {
		doc = append(doc, `,{"name":"a","description":"0123456789","parameters":{"a":{"type":"string"}}}`...)
	}
	doc = append(doc, "]}"...)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(doc, Options{})
	}
}
