package wire

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/httpapi"
	"repute/manifest"
)

// Said is what an agent's document says of it. Nobody but its author vouches for it.
type Said struct {
	Name           *string        `json:"name" doc:"from the agent's document, like the fields below; null or empty without a document"`
	Description    *string        `json:"description"`
	Services       []AgentService `json:"services"`
	Skills         []string       `json:"skills" doc:"skills of all services, each once"`
	Domains        []string       `json:"domains" doc:"domains of all services, each once"`
	X402Support    *bool          `json:"x402Support" doc:"null when it says nothing"`
	Active         *bool          `json:"active" doc:"null when it says nothing"`
	SupportedTrust []string       `json:"supportedTrust"`
	Link           *string        `json:"link" enum:"linked,unlinked,other" doc:"whether the document names this agent as its own: linked; unlinked: it names none; other: it names others. Null without a document, and in a list where a long one was cut"`
}

// AgentService is one endpoint an agent offers.
type AgentService struct {
	Name     string `json:"name"`
	Endpoint string `json:"endpoint"`
	Version  string `json:"version"`
}

// HashProof is a verdict on bytes with what it rests on.
type HashProof struct {
	Verdict string  `json:"verdict" enum:"verified,mismatch,absent,unavailable" doc:"absent: nothing on chain says which bytes were meant; unavailable: it does, but the bytes are not known"`
	By      *string `json:"by" enum:"keccak256,cid,uri" doc:"the hash given on chain, the CID of an ipfs uri, or the uri itself, which holds the bytes; null when nothing is proved"`
}

// Beside is what others say of an agent's document. It is read at latest only.
type Beside struct {
	DomainProofs []DomainProof `json:"domainProofs" doc:"the domains of the agent's endpoints, and whether each domain confirms the agent; empty unless at is latest"`
	LinkedAgents []LinkedAgent `json:"linkedAgents" doc:"agents on any chain whose documents name this agent, and which this agent's document names; their reputations are never added up; empty unless at is latest"`
}

// DomainProof is what is known of one domain of an agent's endpoints.
type DomainProof struct {
	Domain    string  `json:"domain"`
	Verdict   string  `json:"verdict" enum:"proven,refused,unavailable" doc:"proven: its well-known file names the agent; refused: its file names others, or there is none; unavailable: not read yet, or not readable"`
	URL       *string `json:"url" doc:"of the well-known file"`
	SHA256    *Hash   `json:"sha256" doc:"of its bytes"`
	CheckedAt *Time   `json:"checkedAt" format:"date-time"`
	NextCheck *Time   `json:"nextCheck" format:"date-time"`
	Reason    *string `json:"reason" doc:"code of the last failure"`
	Detail    *string `json:"detail" doc:"the failure in words"`
}

// LinkedAgent is an agent whose document and another's name each other.
type LinkedAgent struct {
	ID       ID     `json:"id" example:"eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432:22"`
	ShortID  ID     `json:"shortId"`
	Name     string `json:"name" doc:"what its document says"`
	SameFile bool   `json:"sameFile" doc:"both show the same bytes"`
}

// encodeSaid writes what the agent's document says; every list is empty where there is no
// document.
func encodeSaid(a repute.Agent) Said {
	w := Said{Services: []AgentService{}, Skills: []string{}, Domains: []string{}, SupportedTrust: []string{}}
	r := a.Document.Registration
	if r == nil {
		return w
	}
	w.Name, w.Description = new(httpapi.Clean(r.Name)), new(httpapi.Clean(r.Description))
	w.X402Support, w.Active = r.X402, r.Active
	w.SupportedTrust = Each(r.SupportedTrust, httpapi.Clean)
	w.Skills, w.Domains = Each(r.Skills(), httpapi.Clean), Each(r.Domains(), httpapi.Clean)
	w.Services = Each(r.Services, func(s repute.Service) AgentService {
		return AgentService{httpapi.Clean(s.Name), httpapi.Clean(s.Endpoint), httpapi.Clean(s.Version)}
	})
	if !r.Partial || r.Registrations != nil {
		w.Link = OrNull(string(manifest.Links(*r, a.ID)))
	}
	return w
}

// proofOf judges a registration file, to which no hash belongs: only its URI can prove it.
func proofOf(d repute.Document) repute.HashProof {
	var known common.Hash
	if d.SHA256 != [32]byte{} {
		known = common.Hash{1} // any: there is none to compare it with
	}
	return repute.JudgeHash(common.Hash{}, known, d.Source)
}

// encodeProof writes a verdict on the bytes of a document, with null where nothing proves it.
func encodeProof(p repute.HashProof) HashProof {
	return HashProof{Verdict: string(p.Result), By: OrNull(p.By)}
}

// EncodeDomainProof writes what is known of one domain; texts of its server are cut short.
func EncodeDomainProof(p repute.DomainProof) DomainProof {
	return DomainProof{
		Domain: BriefText(p.Domain), Verdict: string(p.Result), URL: OrNull(BriefText(p.URL)),
		SHA256:    encodeHash(p.SHA256),
		CheckedAt: EncodeTime(p.CheckedAt), NextCheck: EncodeTime(p.NextCheck), Reason: OrNull(p.Reason),
		Detail: OrNull(BriefText(p.Detail)),
	}
}

// EncodeLinked writes an agent whose document and another's name each other.
func EncodeLinked(l repute.LinkedAgent) LinkedAgent {
	return LinkedAgent{ID: ID(l.ID.String()), ShortID: ID(l.ID.Short()), Name: BriefText(l.Name), SameFile: l.SameFile}
}
