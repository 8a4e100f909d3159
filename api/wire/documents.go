package wire

import (
	"unicode/utf8"

	"repute"
	"repute/internal/httpapi"
)

// DocumentVersion is one outcome of reading a URI that an agent had.
type DocumentVersion struct {
	URI       string  `json:"uri" doc:"no more than the first 2 KiB"`
	URIHex    *Hex    `json:"uriHex,omitempty"`
	URISize   Long    `json:"uriSize" doc:"bytes of the whole uri on chain"`
	FromBlock Long    `json:"fromBlock" doc:"the agent had the uri from this block on"`
	ToBlock   *Long   `json:"toBlock" doc:"until before this block; null while it has it"`
	FetchedAt *Time   `json:"fetchedAt" doc:"null when the uri was not read yet" format:"date-time"`
	Source    *string `json:"source" doc:"data, inline, https or ipfs; null for a failure"`
	SHA256    *Hash   `json:"sha256" doc:"null for a failure"`
	Size      Long    `json:"size" doc:"bytes"`
	Kept      bool    `json:"kept" doc:"/documents/{sha256} gives the bytes"`
	Reason    *string `json:"reason" doc:"code of a failure"`
	Cut       []Cut   `json:"cut" doc:"texts that were cut, which end with an ellipsis, and where the whole is"`
}

// DocumentList is a page of an agent's documents.
type DocumentList struct {
	Items []DocumentVersion `json:"items"`
	Next  *string           `json:"next" doc:"cursor of the next page, null at the end"`
	AsOf  []AsOf            `json:"asOf"`
}

// Steady returns the body without what moves while nothing happens, for its ETag.
func (b DocumentList) Steady() any { b.AsOf = Each(b.AsOf, SteadyAsOf); return b }

// RefreshAnswer tells that a document will be read again.
type RefreshAnswer struct {
	Queued        bool  `json:"queued" doc:"always true: otherwise the answer is 429"`
	NextAllowedAt *Time `json:"nextAllowedAt" doc:"when the next refresh of this document will be granted" format:"date-time"`
}

// EncodeVersions writes the reads of the URIs of an agent.
func EncodeVersions(id repute.AgentID, list []repute.DocumentVersion) []DocumentVersion {
	return Each(list, func(v repute.DocumentVersion) DocumentVersion { return encodeVersion(id, v) })
}

// encodeVersion writes one read of a URI. The URI itself is cut where it is long, and the answer
// names the path of the whole.
func encodeVersion(id repute.AgentID, v repute.DocumentVersion) DocumentVersion {
	w := DocumentVersion{
		URISize: Long(v.URISize), FromBlock: Long(v.FromBlock), ToBlock: OrNull(Long(v.ToBlock)),
		FetchedAt: EncodeTime(v.FetchedAt),
		Source:    OrNull(v.Source), SHA256: encodeHash(v.SHA256), Size: Long(v.Size), Kept: v.Kept,
		Reason: OrNull(httpapi.Clean(v.Reason)),
	}
	c := unboundedCutter()
	goesOn := v.URISize > int64(len(v.URI)) && len(v.URI) > maxShown-utf8.UTFMax
	w.URI, w.URIHex = c.chain(v.URI, "uri", URIPath(id, repute.At{Block: v.FromBlock}), goesOn)
	w.Cut = c.cuts
	return w
}
