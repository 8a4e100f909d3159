package store

import (
	"slices"
	"strings"
)

// spelling is an ending that Americans write in another way, of words with at least so
// many letters before it.
type spelling struct {
	british, american string
	least             int
}

// speller turns words into American spelling.
type speller struct {
	words   map[string]string
	endings []spelling // the first that fits counts
	doubled []string   // words whose last letter only the British double
	same    []string   // stems that all spell with s
}

func newSpeller() speller {
	s := speller{
		words: spelledWords(),
		doubled: []string{"travel", "model", "label", "cancel", "signal", "channel", "level", "fuel", "tunnel", "counsel", "marshal",
			"panel", "total", "dial", "equal", "initial"},
		same: strings.Fields("advertis advis apprais bruis circumcis compris compromis concis cruis demis despis devis disguis enterpris excis exercis " +
			"expertis franchis improvis likewis merchandis otherwis paradis prais precis premis promis revis supervis surpris televis treatis"),
	}
	add := func(british, american string, least int, after ...string) {
		for _, e := range after {
			s.endings = append(s.endings, spelling{british + e, american + e, least})
		}
	}
	add("is", "iz", 3, "e", "es", "ed", "er", "ers", "ing", "able", "ation", "ations", "ational")
	add("ys", "yz", 3, "e", "es", "ed", "er", "ers", "ing")
	add("our", "or", 3, "", "s", "ed", "ing", "ful", "able", "al", "ally", "ite", "ites", "less", "hood")
	add("tre", "ter", 2, "", "s")
	add("bre", "ber", 2, "", "s")
	add("ogue", "og", 3, "", "s")
	return s
}

// spelledWords are words that no ending tells of.
func spelledWords() map[string]string {
	pairs := strings.Fields("grey gray greys grays defence defense defences defenses offence offense offences offenses licence license licences licenses " +
		"licenced licensed pretence pretense practise practice practised practiced practises practices practising practicing " +
		"programme program programmes programs cheque check cheques checks judgement judgment judgements judgments ageing aging artefact artifact " +
		"artefacts artifacts sceptic skeptic sceptical skeptical tyre tire tyres tires enrol enroll enrols enrolls enrolment enrollment " +
		"fulfil fulfill fulfils fulfills fulfilment fulfillment instalment installment instalments installments skilful skillful " +
		"jewellery jewelry aeroplane airplane aeroplanes airplanes aluminium aluminum manoeuvre maneuver manoeuvres maneuvers " +
		"paediatric pediatric paediatrics pediatrics orthopaedic orthopedic encyclopaedia encyclopedia anaesthesia anesthesia " +
		"haematology hematology gynaecology gynecology mould mold moulds molds plough plow kerb curb storey story storeys stories " +
		"centred centered catalogued cataloged")
	out := make(map[string]string, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// american is a folded word in American spelling.
func (s speller) american(word string) string {
	if w, ok := s.words[word]; ok {
		return w
	}
	for _, ending := range []string{"led", "ling", "ler", "lers", "lation"} {
		if stem, ok := strings.CutSuffix(word, ending); ok && slices.Contains(s.doubled, stem) {
			return stem + strings.TrimPrefix(ending, "l")
		}
	}
	for _, e := range s.endings {
		stem, ok := strings.CutSuffix(word, e.british)
		if ok && len(stem) >= e.least && !slices.Contains(s.same, stem+"is") {
			return stem + e.american
		}
	}
	return word
}
