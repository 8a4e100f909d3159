package oaf

import (
	"fmt"
	"strings"

	"repute/manifest/oaf/frontmatter"
)

// licenseText returns the file LICENSE: the text of short licenses, and a reference to the SPDX list for others. It has
// no year, so that it never changes.
func (a *Agent) licenseText() string {
	holder := frontmatter.OneLine(a.Author)
	if holder == "" {
		holder = "the authors of " + a.ID()
	}
	copyright := copyrightMark + holder + "\n\n"
	switch a.License {
	case "MIT":
		return "MIT License\n\n" + copyright + mit
	case "ISC":
		return "ISC License\n\n" + copyright + isc
	case "0BSD":
		return "BSD Zero Clause License\n\n" + copyright + zeroBSD
	case "":
		return copyright + "All rights reserved.\n"
	}
	if isLicense(a.License) && !strings.ContainsAny(a.License, " ()") {
		return copyright + fmt.Sprintf("This agent is licensed under %s.\n"+
			"The text of the license is at https://spdx.org/licenses/%s.html\n",
			a.License, strings.TrimSuffix(a.License, "+"))
	}
	return copyright + "This agent is licensed under: " + frontmatter.OneLine(a.License) + "\n"
}

// isLicenseOf reports whether a text is one that licenseText writes of the agent with any author and license.
func isLicenseOf(text, id string) bool {
	_, rest, _ := strings.Cut(text, copyrightMark)
	holder, _, _ := strings.Cut(rest, "\n")
	if holder == "the authors of "+id {
		holder = ""
	}
	licenses := []string{"MIT", "ISC", "0BSD", ""}
	if _, list, ok := strings.Cut(rest, "https://spdx.org/licenses/"); ok {
		licenses = append(licenses, strings.TrimSuffix(list, ".html\n"))
	}
	vendor, key, _ := strings.Cut(id, "/")
	for _, license := range licenses {
		a := &Agent{VendorKey: vendor, AgentKey: key, Slug: id, Author: holder, License: license}
		if a.licenseText() == text {
			return true
		}
	}
	return false
}

// copyrightMark begins the line of a license that names its holder.
const copyrightMark = "Copyright (c) "

// mit, isc and zeroBSD are the texts of the SPDX list below the line of the copyright.
const mit = `Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

const isc = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

` + noWarranty

const zeroBSD = `Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted.

` + noWarranty

// noWarranty ends both ISC and 0BSD.
const noWarranty = `THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM
LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR
OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THIS SOFTWARE.
`
