package manifest

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"

	"repute"
)

// The class names of the OASF taxonomies 0.7.8, 0.8.7, 1.0.4 and 1.1.1 together
// (agntcy/oasf). Agents name classes of every release, so one list serves for all.
var (
	//go:embed oasf_skills.txt
	oasfSkillNames string
	//go:embed oasf_domains.txt
	oasfDomainNames string

	oasfSkills  = sync.OnceValue(func() map[string]bool { return wordSet(oasfSkillNames) })
	oasfDomains = sync.OnceValue(func() map[string]bool { return wordSet(oasfDomainNames) })
)

// wordSet returns the words of a text as a set.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		set[word] = true
	}
	return set
}

// oasf reports skills and domains that no release of the taxonomy has. Agents of other
// protocols name their skills freely, so only lists that claim to be OASF are checked.
func (r *reader) oasf(skills []string, skillsPath string, domains []string, domainsPath string) {
	r.oasfList(oasfSkills(), "skill", skills, skillsPath)
	r.oasfList(oasfDomains(), "domain", domains, domainsPath)
}

// oasfList reports names that are not in the published OASF taxonomy. The names are kept, because
// the taxonomy grows.
func (r *reader) oasfList(known map[string]bool, what string, list []string, path string) {
	for _, name := range list {
		if !known[oasfName(name)] {
			r.add(CodeOASFUnknown, path, "%.80q is no OASF %s", name, what)
		}
	}
}

// oasfName is the class name in a path (category/class), in a caption ("Data
// Engineering") or alone.
func oasfName(s string) string {
	s = strings.ToLower(s[strings.LastIndexByte(s, '/')+1:])
	words := strings.FieldsFunc(s, func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	return strings.Join(words, "_")
}

// addOASF reads oasf_skills and oasf_domains, which some publishers write at the top
// of the file instead of in an OASF service. They join the file's OASF service; a file
// without one gets one that has no endpoint.
func (r *reader) addOASF(o *object, services []repute.Service) []repute.Service {
	skills := o.oasfAlias("oasf_skills", "oasfSkills")
	domains := o.oasfAlias("oasf_domains", "oasfDomains")
	if len(skills)+len(domains) == 0 {
		return services
	}
	r.oasf(skills, o.at("oasf_skills"), domains, o.at("oasf_domains"))
	i := slices.IndexFunc(services, func(s repute.Service) bool { return isOASF(s.Name) })
	if i < 0 {
		return append(services, repute.Service{Name: "OASF", Skills: skills, Domains: domains})
	}
	s := &services[i]
	s.Skills, s.Domains = union(s.Skills, skills), union(s.Domains, domains)
	return services
}

// oasfAlias reads a list that belongs into a service.
func (o *object) oasfAlias(spellings ...string) []string {
	list, name := o.firstTexts(spellings...)
	if name != "" {
		o.r.add(CodeAlias, o.at(name), "read as a member of the OASF service")
	}
	return list
}

// isOASF reports whether a service lists OASF skills and domains instead of an endpoint.
func isOASF(service string) bool { return strings.EqualFold(strings.TrimSpace(service), "oasf") }

// union is a with what of b it lacks, at most maxSkills.
func union(a, b []string) []string {
	for _, s := range b {
		if len(a) < maxSkills && !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}
