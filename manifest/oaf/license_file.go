package oaf

import (
	"regexp"
	"slices"
	"strings"

	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/tree"
)

// licenseFamily is a group of licenses whose texts begin alike.
type licenseFamily struct {
	name   string   // for messages
	phrase string   // of the text, in lower case
	ids    []string // the beginnings of the SPDX identifiers, in lower case
}

// licenseFamilies returns common licenses.
func licenseFamilies() []licenseFamily {
	return []licenseFamily{
		{"AGPL", "gnu affero general public license", []string{"agpl-"}},
		{"LGPL", "gnu lesser general public license", []string{"lgpl-"}},
		{"GPL", "gnu general public license", []string{"gpl-"}},
		{"Apache", "apache license", []string{"apache-"}},
		{"MPL", "mozilla public license", []string{"mpl-"}},
		{"MIT", "permission is hereby granted, free of charge, to any person", []string{"mit", "x11", "bsl-1.0", "ncsa", "json"}},
		{"ISC or 0BSD", "permission to use, copy, modify, and/or distribute this software", []string{"isc", "0bsd"}},
		{"BSD", "redistribution and use in source and binary forms", []string{"bsd-"}},
		{"Unlicense", "this is free and unencumbered software", []string{"unlicense"}},
		{"CC0", "cc0 1.0 universal", []string{"cc0-"}},
	}
}

// familyOfID returns the name of the family of an SPDX identifier, "" for another license.
func familyOfID(id string) string {
	for _, f := range licenseFamilies() {
		if slices.ContainsFunc(f.ids, func(begin string) bool { return strings.HasPrefix(strings.ToLower(id), begin) }) {
			return f.name
		}
	}
	return ""
}

// familyOfText returns the family whose phrase comes first in the text, "" for none: GNU licenses name each other.
// Without a phrase it uses the SPDX link, which generated files may have instead of the text.
func familyOfText(text string) (name string) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	first := len(text)
	for _, f := range licenseFamilies() {
		if at := strings.Index(text, f.phrase); at >= 0 && at < first {
			name, first = f.name, at
		}
	}
	if m := regexp.MustCompile(`https://spdx\.org/licenses/([a-z0-9.-]+)\.html`).FindStringSubmatch(text); name == "" && m != nil {
		return familyOfID(m[1])
	}
	return name
}

// checkLicenseFile reports a file LICENSE whose text is that of another license than the field's. It reports nothing if
// the text, or any license of the expression, is not in licenseFamilies.
func (a *Agent) checkLicenseFile(list *problem.List) {
	at := slices.IndexFunc(a.Files, func(f tree.File) bool {
		return regexp.MustCompile(`(?i)^(licen[cs]e|copying)(\.md|\.txt)?$`).MatchString(f.Path)
	})
	if at < 0 || !isLicense(a.License) {
		return
	}
	has := familyOfText(string(a.Files[at].Data))
	isOther := func(id string) bool { return familyOfID(id) != "" && familyOfID(id) != has }
	ids := slices.DeleteFunc(strings.FieldsFunc(a.License, func(r rune) bool { return strings.ContainsRune(" ()", r) }),
		func(word string) bool { return word == "AND" || word == "OR" })
	if has != "" && !slices.ContainsFunc(ids, func(id string) bool { return !isOther(id) }) {
		list.Add(problem.CodeLicenseFile, problem.Place{File: a.Files[at].Path}, "has the text of %s, and license is %.80q",
			has, a.License)
	}
}
