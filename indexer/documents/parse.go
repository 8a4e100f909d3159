package documents

import (
	"reflect"

	"repute"
	"repute/manifest"
	"repute/store/docdb"
)

// parse reads the bytes of a document by its use and by its content. registration is set for the
// files of agents and the proofs of domains, agents only for the files of agents, whose domains
// must prove that they belong to the agent.
func parse(body []byte, registration, agents bool) docdb.Parsed {
	p := docdb.Parsed{ParserVersion: manifest.Version, FileOnly: !registration}
	if registration {
		reg, problems := manifest.Parse(body)
		p.Problems = problems
		if !repute.HasErrors(problems) || !reflect.ValueOf(reg).IsZero() { // of a web page there is nothing to show
			p.Registration = &reg
		}
		if agents {
			p.Domains = domains(reg)
		}
	}
	kind := manifest.Detect(body)
	if kind == repute.FeedbackDocument || !registration { // the rating records the problems of its file
		file, problems := manifest.ParseFeedback(body)
		p.Files = append(p.Files, docdb.FileParse{Kind: repute.FeedbackDocument, Feedback: &file, Problems: problems})
	}
	if kind == repute.CardDocument {
		card, problems := manifest.ParseCard(body)
		p.Files = append(p.Files, docdb.FileParse{Kind: repute.CardDocument, Card: &card, Problems: problems})
	}
	return p
}

// domains returns the proofs that the domains of a registration need. That a domain serves the file
// itself proves nothing, because raw-file hosts and buckets serve files of anyone. Only the
// operator of a site can write below /.well-known/ (RFC 8615).
func domains(reg repute.Registration) (out []docdb.Domain) {
	for _, name := range manifest.Domains(reg) {
		out = append(out, docdb.Domain{Name: name, Proof: "https://" + name + "/.well-known/agent-registration.json"})
	}
	return out
}
