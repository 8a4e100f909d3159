package searchtext

import (
	"strings"
)

// spelledWords are words whose spelling follows no rule, each as British:American.
const spelledWords = " grey:gray greys:grays defence:defense defences:defenses offence:offense offences:offenses licence:license licences:licenses" +
	" licenced:licensed pretence:pretense practise:practice practised:practiced practises:practices practising:practicing" +
	" programme:program programmes:programs cheque:check cheques:checks judgement:judgment judgements:judgments ageing:aging" +
	" artefact:artifact artefacts:artifacts sceptic:skeptic sceptical:skeptical tyre:tire tyres:tires enrol:enroll enrols:enrolls" +
	" enrolment:enrollment fulfil:fulfill fulfils:fulfills fulfilment:fulfillment instalment:installment instalments:installments" +
	" skilful:skillful jewellery:jewelry aeroplane:airplane aeroplanes:airplanes aluminium:aluminum manoeuvre:maneuver" +
	" manoeuvres:maneuvers paediatric:pediatric paediatrics:pediatrics orthopaedic:orthopedic encyclopaedia:encyclopedia" +
	" anaesthesia:anesthesia haematology:hematology gynaecology:gynecology mould:mold moulds:molds plough:plow kerb:curb" +
	" storey:story storeys:stories centred:centered catalogued:cataloged "

// doubledWords are words whose last letter is doubled before an ending in British spelling only.
const doubledWords = " travel model label cancel signal channel level fuel tunnel counsel marshal panel total dial equal initial "

// sameStems are stems that are spelled with an s in both.
const sameStems = " advertis advis apprais bruis circumcis compris compromis concis cruis demis despis devis disguis enterpris excis exercis" +
	" expertis franchis improvis likewis merchandis otherwis paradis prais precis premis promis revis supervis surpris televis" +
	" treatis "

// spelling is a group of words that American spelling writes differently.
type spelling struct {
	british, american string
	least             int    // letters before the British part, at least
	endings           string // what may follow it, between spaces: two in a row are nothing
}

// spellings returns the groups in the order in which they are tried.
func spellings() [6]spelling {
	return [...]spelling{
		{"is", "iz", 3, " e es ed er ers ing able ation ations ational "},
		{"ys", "yz", 3, " e es ed er ers ing "},
		{"our", "or", 3, "  s ed ing ful able al ally ite ites less hood "},
		{"tre", "ter", 2, "  s "},
		{"bre", "ber", 2, "  s "},
		{"ogue", "og", 3, "  s "},
	}
}

// american returns a folded word in American spelling.
func american(word string) string {
	if w, ok := spelledWord(word); ok {
		return w
	}
	for _, ending := range [...]string{"led", "ling", "ler", "lers", "lation"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && strings.Contains(doubledWords, " "+stem+" ") {
			return stem + ending[1:]
		}
	}
	for _, s := range spellings() {
		if stem, ending, ok := s.split(word); ok {
			return stem + s.american + ending
		}
	}
	return word
}

// spelledWord looks a word up in spelledWords.
func spelledWord(word string) (american string, ok bool) {
	_, rest, ok := strings.Cut(spelledWords, " "+word+":")
	american, _, _ = strings.Cut(rest, " ")
	return american, ok
}

// split divides a word of the group around its British part.
func (s spelling) split(word string) (stem, ending string, ok bool) {
	i := strings.LastIndex(word, s.british)
	if i < s.least {
		return "", "", false
	}
	stem, ending = word[:i], word[i+len(s.british):]
	return stem, ending, strings.Contains(s.endings, " "+ending+" ") && !strings.Contains(sameStems, " "+stem+"is ")
}
