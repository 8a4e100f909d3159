package wire

import (
	"repute"
	"repute/manifest"
)

// File is what is known of a file that a rating, a response or a validation points to.
type File struct {
	Status         string        `json:"status" enum:"none,pending,ok,invalid,failed,dead,denied" doc:"invalid: a rating's file that was read and is no feedback file or one with errors"`
	Source         *string       `json:"source" doc:"data, inline, https or ipfs; null before the first fetch"`
	SHA256         *Hash         `json:"sha256" doc:"of the bytes, which /documents/{sha256} gives"`
	Keccak256      *Hash         `json:"keccak256" doc:"of the bytes"`
	Size           Long          `json:"size" doc:"bytes"`
	FetchedAt      *Time         `json:"fetchedAt" format:"date-time"`
	Reason         *string       `json:"reason" doc:"code of the last failure"`
	Detail         *string       `json:"detail" doc:"the failure in words"`
	Proof          HashProof     `json:"proof" doc:"whether these bytes were meant"`
	Feedback       *FeedbackFile `json:"feedback,omitempty" doc:"what a rating's file says, without unknown members; absent for other files and for a long one"`
	Problems       []Problem     `json:"problems" doc:"of a feedback file, the first ten"`
	ProblemCount   Long          `json:"problemCount"`
	Contradictions []Problem     `json:"contradictions" doc:"where a feedback file contradicts the rating that points to it; the chain decides"`
}

// FeedbackFile is what a feedback file says.
type FeedbackFile struct {
	Registry  string         `json:"registry" doc:"eip155:{chainId}:{address}, as written"`
	TokenID   *BigInt        `json:"tokenId"`
	Client    string         `json:"client"`
	CreatedAt string         `json:"createdAt"`
	Value     string         `json:"value" doc:"a decimal number as written: an integer that decimals applies to, or one with a fraction"`
	Decimals  *int32         `json:"decimals"`
	Rating    string         `json:"rating" doc:"what older files give instead of value"`
	Scale     *FeedbackScale `json:"scale" doc:"between which numbers the value lies; null when the file does not say or contradicts itself"`
	Tag1      string         `json:"tag1"`
	Tag2      string         `json:"tag2"`
	Endpoint  string         `json:"endpoint"`
	Text      string         `json:"text" doc:"for people"`
	MCP       FeedbackMCP    `json:"mcp"`
	A2A       FeedbackA2A    `json:"a2a"`
	OASF      FeedbackOASF   `json:"oasf"`
	Payment   *PaymentClaim  `json:"payment" doc:"a claim to be checked on chain, no proof by itself"`
}

// FeedbackScale says between which numbers a value lies.
type FeedbackScale struct {
	Min string `json:"min" doc:"a decimal number as written; empty when absent"`
	Max string `json:"max" doc:"a decimal number as written"`
}

// FeedbackMCP says which part of an MCP server was used.
type FeedbackMCP struct {
	Tool     string `json:"tool"`
	Prompt   string `json:"prompt"`
	Resource string `json:"resource"`
}

// FeedbackA2A says what was asked of an A2A agent.
type FeedbackA2A struct {
	Skills    []string `json:"skills"`
	ContextID string   `json:"contextId"`
	TaskID    string   `json:"taskId"`
}

// FeedbackOASF says what was asked for in terms of OASF.
type FeedbackOASF struct {
	Skills  []string `json:"skills"`
	Domains []string `json:"domains"`
}

// PaymentClaim is a payment that a feedback file claims.
type PaymentClaim struct {
	From    string `json:"from"`
	To      string `json:"to"`
	ChainID string `json:"chainId"`
	TxHash  string `json:"txHash"`
}

// encodeRatingFile compares a feedback file with its rating, too.
func encodeRatingFile(f repute.Feedback, c *cutter) *File {
	if f.File == nil {
		return nil
	}
	document := newDocumentCutter()
	w := encodeFileBy(*f.File, document)
	if f.File.Feedback != nil {
		w.Contradictions = document.problems(manifest.MatchFeedback(*f.File.Feedback, f))
	}
	if document.any {
		c.note("file", documentPath(f.File.SHA256, f.File.Dropped))
	}
	return w
}

// encodeFile writes a file that is compared with nothing but its hash, null for none.
func encodeFile(f *repute.File) *File {
	if f == nil {
		return nil
	}
	return encodeFileBy(*f, newDocumentCutter())
}

// encodeFileBy writes a file whose texts are cut by c, which notes what it cut.
func encodeFileBy(f repute.File, c *documentCutter) *File {
	w := &File{
		Status: string(f.Status), Source: OrNull(f.Source), SHA256: encodeHash(f.SHA256),
		Keccak256: encodeHash(f.Keccak),
		Size:      Long(f.Size),
		FetchedAt: EncodeTime(f.FetchedAt), Reason: OrNull(f.Reason), Detail: OrNull(BriefText(f.Detail)),
		Proof:    encodeProof(f.Proof),
		Problems: c.problems(f.Problems), ProblemCount: Long(f.ProblemCount), Contradictions: []Problem{},
	}
	if f.Feedback != nil {
		w.Feedback = c.feedback(*f.Feedback)
	}
	return w
}
