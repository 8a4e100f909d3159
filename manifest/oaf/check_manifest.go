package oaf

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
	"github.com/github/go-spdx/v2/spdxexp"

	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
)

// Bounds of the format's text, in characters.
const (
	maxName        = 100
	minDescription = 50
	maxDescription = 500
)

// checkManifest reports what the text of the format forbids in AGENTS.md itself.
func checkManifest(a *Agent, o *frontmatter.Object, list *problem.List) {
	checkRequired(a, o)
	checkIdentity(a, o)
	checkLengths(a, o)
	o.CheckComment("name", "description", "author")
	checkValues(a, o)
	checkBody(a, list)
}

// checkRequired reports required fields that are missing. The format's own example of a sub-agent, with a direct
// prompt, has only name and description.
func checkRequired(a *Agent, o *frontmatter.Object) {
	code := problem.CodeMissing
	if a.Body != "" && !a.IsStructured() {
		code = problem.CodeMissingPrompt
	}
	for _, field := range []struct {
		name, value string
		code        string
	}{
		{"name", a.Name, problem.CodeMissing}, {"description", a.Description, problem.CodeMissing},
		{"vendorKey", a.VendorKey, code}, {"agentKey", a.AgentKey, code}, {"version", a.Version, code}, {"slug", a.Slug,
			code},
		{"author", a.Author, code}, {"license", a.License, code}, {"tags", strings.Join(a.Tags, ""), code},
	} {
		if strings.TrimSpace(field.value) == "" {
			o.Report(field.code, field.name, "%s is required", field.name)
		}
	}
}

// checkIdentity reports keys, versions and slugs that cannot name the agent, or that contradict each other.
func checkIdentity(a *Agent, o *frontmatter.Object) {
	for _, key := range []struct{ name, value string }{{"vendorKey", a.VendorKey}, {"agentKey", a.AgentKey}} {
		if key.value != "" && !isKebab(key.value) {
			o.Report(problem.CodeKebab, key.name, "%.80q is not kebab-case", key.value)
		}
	}
	if a.Version != "" && !isVersion(a.Version) {
		o.Report(problem.CodeSemver, "version", "%.80q is no semantic version", a.Version)
	}
	vendor, agent, ok := strings.Cut(a.Slug, "/")
	switch {
	case a.Slug == "":
	case !ok || !isKebab(vendor) || !isKebab(agent):
		o.Report(problem.CodeSlug, "slug", "%.80q is not vendorKey/agentKey", a.Slug)
	case a.VendorKey != "" && a.AgentKey != "" && a.Slug != a.VendorKey+"/"+a.AgentKey:
		o.Report(problem.CodeSlugOther, "slug", "%.80q is not %.80q", a.Slug, a.VendorKey+"/"+a.AgentKey)
	}
	if dir := path.Base(a.Dir); a.AgentKey != "" && dir != "." && dir != a.AgentKey {
		o.Report(problem.CodeDirectory, "agentKey", "%.80q is in the directory %.80q", a.AgentKey, dir)
	}
	if a.License != "" && !isLicense(a.License) {
		o.Report(problem.CodeSPDX, "license", "%.80q is no SPDX expression", a.License)
	}
}

// isLicense reports whether a text is an SPDX expression. The length is bounded because the parser is recursive.
func isLicense(text string) bool {
	const most = 200
	if len(text) > most {
		return false
	}
	ok, _ := spdxexp.ValidateLicenses([]string{text})
	return ok
}

// isKebab reports whether a text is kebab-case: lower-case letters, digits and single hyphens between them.
func isKebab(s string) bool {
	return len(s) <= maxName && regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(s)
}

// isVersion reports whether a text is a semantic version of three numbers.
func isVersion(s string) bool {
	_, err := semver.StrictNewVersion(s)
	return err == nil
}

// isConstraint reports whether a text is a version or a range of versions.
func isConstraint(s string) bool {
	const most = 100
	if len(s) > most {
		return false
	}
	_, err := semver.NewConstraint(s)
	return err == nil
}

// satisfies reports whether a version is one that a reference wants. What is no version or no constraint has its own
// problem.
func satisfies(want, have string) bool {
	version, err := semver.NewVersion(have)
	if want == "" || err != nil || !isConstraint(want) {
		return true
	}
	constraint, err := semver.NewConstraint(want)
	return err != nil || constraint.Check(version)
}

// checkLengths reports texts outside the limits of the format, in characters and not in bytes.
func checkLengths(a *Agent, o *frontmatter.Object) {
	if n := utf8.RuneCountInString(a.Name); n > maxName {
		o.Report(problem.CodeName, "name", "has %d characters, at most %d are allowed", n, maxName)
	}
	if n := utf8.RuneCountInString(a.Description); a.Description != "" && (n < minDescription || n > maxDescription) {
		o.Report(problem.CodeDescription, "description", "has %d characters, %d to %d are allowed", n, minDescription,
			maxDescription)
	}
}

// checkValues reports values outside what the format allows.
func checkValues(a *Agent, o *frontmatter.Object) {
	if t := a.Config.Temperature; t != nil && (*t < 0 || *t > 1) {
		o.Object("config").Report(problem.CodeRange, "temperature", "%v is not within 0 and 1", *t)
	}
	if m := a.Memory; m != nil && m.Type != MemoryEditable && m.Type != MemoryReadOnly {
		o.Object("memory").Report(problem.CodeEnum, "type", "%.80q is neither editable nor read-only", m.Type)
	}
	for _, s := range o.Objects("skills", "name") {
		if source := s.Text("source"); source != "" && !isSource(source) {
			s.Report(problem.CodeEnum, "source", "%.80q is neither local, registry nor the https address of an index",
				source)
		}
	}
	for _, w := range o.Objects("weblets", "weblet") {
		launch := w.Text("launch")
		if launch != "" && !slices.Contains([]string{"onDemand", "background", "foreground"}, launch) {
			w.Report(problem.CodeEnum, "launch", "%.80q is none of onDemand, background, foreground", launch)
		}
	}
	for _, ref := range referencesOf(o) {
		if ref.version != "" && !isConstraint(ref.version) {
			ref.in.Report(problem.CodeConstraint, "version", "%.80q of %.80q is no version and no range", ref.version,
				ref.name)
		}
		if !ref.in.Has(ref.by) && (ref.other == "" || !ref.in.Has(ref.other)) {
			ref.in.Report(problem.CodeNoName, ref.by, "is missing")
		}
	}
	for _, t := range o.Object("orchestration").Objects("triggers", "event") {
		for _, key := range []string{"event", "action"} {
			if t.Text(key) == "" {
				t.Report(problem.CodeNoName, key, "is missing")
			}
		}
	}
}

// isSource reports whether a text says where a skill comes from. A misspelled local would be a skill that nobody looks
// for.
func isSource(text string) bool {
	return text == SourceLocal || text == SourceRegistry || strings.HasPrefix(text, "https://") ||
		strings.HasPrefix(text, "http://")
}

// reference is an entry of one of the lists of references.
type reference struct {
	list
	name, version string
	in            *frontmatter.Object // the entry
}

// list is one of the lists of references.
type list struct{ member, by, other string } // by and other are the members that name an entry

// referencesOf returns the entries of all lists of references, in the order of the lists.
func referencesOf(o *frontmatter.Object) []reference {
	var out []reference
	for _, l := range []list{{"skills", "name", "skill"}, {"packs", "pack", ""}, {"weblets", "weblet", ""},
		{"mcpServers", "server", "configDir"}, {"agents", "agent", ""}} {
		for _, in := range o.Objects(l.member, l.by) {
			name := in.Text(l.by)
			if name == "" && l.other != "" {
				name = in.Text(l.other)
			}
			out = append(out, reference{l, joined(in.Text("vendor"), name), in.Text("version"), in})
		}
	}
	return out
}

// joined returns vendor/name, or the name alone without a vendor: the form by which references are compared.
func joined(vendor, name string) string {
	if vendor == "" {
		return name
	}
	return vendor + "/" + name
}

// checkBody reports a body that is missing or has no sections. Only the strict profile makes the latter an error:
// published agents are often one prompt.
func checkBody(a *Agent, list *problem.List) {
	at := problem.Place{File: ManifestName}
	if a.Body == "" {
		list.Add(problem.CodeNoBody, at, "nothing follows the frontmatter")
		return
	}
	if !hasSection(a.Body) {
		list.Add(problem.CodeNoHeading, at, "the body has no heading ##")
	}
}

// hasSection reports whether a body has a heading of the second level outside code blocks.
func hasSection(body string) bool {
	inCode := false
	for _, line := range strings.Split(body, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		}
		if !inCode && strings.HasPrefix(line, "## ") {
			return true
		}
	}
	return false
}
