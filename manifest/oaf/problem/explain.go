package problem

import "slices"

// explanation describes a code.
type explanation struct {
	code    string
	strict  bool // an error in the strict profile, whatever it is otherwise
	meaning string
	hint    string // what to write instead
}

// Hint returns what to write instead of the text that a code reports; "" for an unknown code.
func Hint(code string) string { return explain(code).hint }

// explain finds a code, also in the form of the strict profile.
// A code in the form of the strict profile begins with E, whatever the first letter of its entry is.
func explain(code string) explanation {
	for _, e := range explanations() {
		if len(code) > 1 && e.code[1:] == code[1:] && (code[0] == e.code[0] || code[0] == 'E' && e.strict) {
			return e
		}
	}
	return explanation{}
}

// explanations returns all codes in the order of the documentation.
func explanations() []explanation {
	return slices.Concat(aboutFiles(), aboutText(), aboutManifest(), aboutReferences(), aboutSkills(), aboutServers())
}

// aboutFiles explains problems of files and archives.
func aboutFiles() []explanation {
	return []explanation{
		{CodeNoManifest, true, "no AGENTS.md in the directory",
			"name the directory that has AGENTS.md, or run repute oaf new"},
		{CodeUnreadable, true, "a file or a directory that cannot be read", "check its permissions"},
		{CodeFileTooLarge, true, "a file over its limit; it is not read",
			"keep AGENTS.md and SKILL.md to 1 MiB and other files to 8 MiB"},
		{CodeTooManyFiles, true, "more files or bytes than are read", "keep the agent to 2,000 files and 64 MiB"},
		{CodePath, true, "a path that is absolute, has .. or a backslash, or leaves the directory; it is not followed",
			"write a path below the agent's directory, with slashes"},
		{CodeSymlink, true, "a symbolic link or a special file; it is not followed", "put the file itself there"},
		{CodeArchive, true, "not a readable zip archive", "make it with repute oaf pack"},
		{CodeBomb, true, "an archive that unpacks to far more than it holds", "make it with repute oaf pack"},
		{CodePackage, true, "an archive without a readable PACKAGE.yaml", "make it with repute oaf pack"},
		{CodePackageOther, false, "PACKAGE.yaml in one of the other two forms", "make it with repute oaf pack"},
		{CodeDuplicateFile, true, "two entries of an archive with one name", "make it with repute oaf pack"},
		{CodePackageAgent, true, "PACKAGE.yaml and the agents of the archive differ", "make it with repute oaf pack"},
		{CodeMore, false, "more problems than are listed", "mend the listed ones first"},
	}
}

// aboutText explains problems of the text of files.
func aboutText() []explanation {
	return []explanation{
		{CodeNoFrontmatter, true, "no frontmatter", "begin with a line ---, the fields in YAML, and another line ---"},
		{CodeLongHead, true, "frontmatter of more than 64 KiB", "move text into the body"},
		{CodeYAML, true, "not YAML", "indent with spaces; quote texts that have : or #"},
		{CodeDuplicate, true, "a member is repeated: readers differ in which value they take", "keep one of them"},
		{CodeAlias, true, "aliases that expand beyond the limit, or nesting deeper than 32 levels",
			"write the values out; flatten them"},
		{CodeNotObject, true, "not an object of members", "write members: name: value"},
		{CodeBOM, false, "a byte order mark before the text", "save the file as UTF-8 without a byte order mark"},
		{CodeCRLF, false, "line ends of Windows, read as LF", "save the file with LF line ends"},
		{CodeEncoding, true, "not UTF-8, or text with a NUL", "save the file as UTF-8"},
		{CodeType, true, "another type than the format's; the member counts as absent",
			"use the type that the message names"},
		{CodeMember, true, "a member that the format does not know; it has no effect",
			"check the spelling, or move it below harnessConfig"},
		{CodeUnquoted, true, "a version that YAML readers take for a number: 1.10 becomes 1.1", "put it into quotes"},
		{CodeReserved, true, "a text that begins with @ or a backtick without quotes, which is no YAML; it is read",
			"put it into quotes"},
		{CodeJSON, true, "not JSON", "check it with a JSON parser"},
		{CodeRestriction, true,
			"a member that restricts the agent is misspelled or has another type than the format's: it would restrict nothing",
			"use the name and the type of the format"},
		{CodeComment, false, "a text without quotes that ends at a comment: what follows \" #\" is no part of it",
			"put the text into quotes, or remove the comment"},
	}
}

// aboutManifest explains problems of the frontmatter and the body.
func aboutManifest() []explanation {
	return []explanation{
		{CodeMissing, true, "a required field is missing or empty", "add it"},
		{CodeMissingPrompt, true,
			"a required field is missing in an agent with a direct prompt, as in the format's own example",
			"add it"},
		{CodeKebab, true, "a key that is not kebab-case",
			"use lower-case letters and digits with single hyphens between them"},
		{CodeSemver, true, "a version that is no semantic version", "write three numbers, such as \"1.0.0\""},
		{CodeSlug, true, "a slug that is not vendorKey/agentKey", "write vendorKey/agentKey"},
		{CodeSlugOther, true, "a slug that names another vendor or agent", "write vendorKey/agentKey of this agent"},
		{CodeDescription, true, "a description outside 50 to 500 characters",
			"say what the agent does and when to use it"},
		{CodeName, true, "a name of more than 100 characters", "shorten it"},
		{CodeSPDX, true, "a license that is no SPDX expression", "use an identifier of the SPDX list, such as MIT"},
		{CodeLicenseFile, true, "a file LICENSE with the text of another license than the field license",
			"correct the field, or remove the file and run repute oaf generate"},
		{CodeNoHeading, true, "no ## heading in the body", "divide the instructions by ## headings"},
		{CodeNoBody, true, "no instructions after the frontmatter", "write the prompt of the agent"},
		{CodeBareEntry, true, "entrypoint outside orchestration", "move it into orchestration"},
		{CodeEntry, true, "an entrypoint or a fallback that names no agent", "name one of agents, or main"},
		{CodeEnum, true, "a value that is not one of the allowed ones", "use one of those that the message names"},
		{CodeRange, true, "a number outside its bounds", "use a number within the bounds that the message names"},
		{CodeConstraint, true, "a version of a reference that is no version and no constraint",
			"write \"1.2.0\" or a range such as \">=1.2.0\""},
		{CodeNoName, true, "an entry without the member that it is about; it has no effect",
			"add it, or remove the entry"},
	}
}

// aboutReferences explains problems of what the agent refers to.
func aboutReferences() []explanation {
	return []explanation{
		{CodeSkillAbsent, true, "a local skill without its directory",
			"add skills/{name}/SKILL.md, or remove the reference"},
		{CodeSkillUndeclared, false, "a directory of skills/ that the frontmatter does not name; it is used",
			"add it to skills with source: local"},
		{CodeConfigAbsent, true, "a required MCP server without its configuration",
			"add the directory that configDir names"},
		{CodeConfigOptional, true, "an optional MCP server without its configuration",
			"add the directory that configDir names"},
		{CodeServerUnlisted, false, "a configuration of mcp-configs/ that the frontmatter does not name; it is used",
			"add it to mcpServers"},
		{CodeAgentAbsent, true, "a required sub-agent whose directory was not found",
			"put its directory next to this one; a registered agent needs none"},
		{CodeAgentOptional, false, "an optional sub-agent whose directory was not found",
			"put its directory next to this one; a registered agent needs none"},
		{CodeCycle, true, "agents that delegate to each other in a circle", "remove one of the references"},
		{CodeConflict, true, "references or directories whose versions exclude each other", "let all name one version"},
		{CodeSelf, true, "an agent that names itself as sub-agent", "remove the reference"},
		{CodeDenied, true, "a tool that is allowed, or asked for by a skill, and denied as well; it is denied",
			"remove it from one of the lists"},
		{CodeToolRequired, true, "a required tool that the MCP server does not have",
			"check the name with the server's list of tools"},
		{CodeToolUnknown, true, "a selected tool that the MCP server does not have",
			"check the name with the server's list of tools"},
		{CodeNotAsked, false, "an MCP server that could not be asked for its tools",
			"start the server and check again"},
		{CodeExcluded, true, "a tool that is selected and excluded; it is excluded", "remove it from one of the lists"},
		{CodeTooDeep, true, "sub-agents nested too deep, or too many of them",
			"keep to 8 levels, 64 agents and 256 references of each"},
		{CodeToolName, false, "a name in tools or config.tools.allowed that no known tool has",
			"check the spelling; a tool of a server is server__tool"},
		{CodeDeniedName, false, "a name in config.tools.denied that no known tool has: it denies nothing",
			"check the spelling; a tool of a server is server__tool"},
		{CodeDirectory, false, "a directory of another name than agentKey, by which other agents look for it",
			"give both one name"},
		{CodeAgentOther, true, "a sub-agent whose directory has an AGENTS.md of another agent; it is not used",
			"write the vendorKey and the agentKey of that AGENTS.md, or correct them there"},
	}
}

// aboutSkills explains problems of skills.
func aboutSkills() []explanation {
	return []explanation{
		{CodeNoSkillFile, true, "a directory of skills/ without SKILL.md; it is no skill", "add SKILL.md"},
		{CodeSkillPlain, true, "SKILL.md without frontmatter; its directory names it",
			"begin with name and description"},
		{CodeSkillName, true, "a name that is not 1 to 64 lower-case letters, digits and single hyphens",
			"use lower-case letters and digits with single hyphens between them"},
		{CodeSkillDirectory, true, "a name that is not the directory's", "give both one name"},
		{CodeSkillDescription, true, "no description: a model cannot know when to use the skill",
			"say what it does and when to use it"},
		{CodeSkillLong, true, "a description of more than 1,024 characters", "shorten it"},
		{CodeSkillMember, true, "a member that the specification of skills does not know", "move it into metadata"},
		{CodeSkillFlow, true, "a list or a map in brackets, which the reference validator rejects",
			"write it in lines"},
		{CodeSkillTools, true, "allowed-tools that is a list", "write the names in one text with spaces between them"},
		{CodeSkillCompat, true, "compatibility of more than 500 characters", "shorten it"},
		{CodeSkillSize, false, "500 lines or 5,000 tokens or more: all of it enters the context",
			"move details into references/"},
	}
}

// aboutServers explains problems of mcp-configs/ and versions/.
func aboutServers() []explanation {
	return []explanation{
		{CodeNoConnection, true, "an MCP server without a connection; it cannot be reached",
			"add connection with type and url or command"},
		{CodeNoAddress, true, "a connection without url, or of stdio without command", "add it"},
		{CodeSecret, true, "a secret in the file itself, by its name or form; runtimes do not use it",
			"write ${NAME} and set the variable"},
		{CodeServerFile, false, "one file for a server instead of a directory; it is read",
			"use mcp-configs/{name}/config.yaml"},
		{CodeDialect, false, "a file in the other form that published agents use; it is read",
			"use the members of the format's text"},
		{CodeNoConfig, true, "a directory of mcp-configs/ without config.yaml", "add config.yaml"},
		{CodeNoSelection, false, "no ActiveMCP.json: every tool of the server is given to the model",
			"select the tools that are needed"},
		{CodeBraces, true,
			"a path of permissions with braces, which are no part of patterns; runtimes refuse the server",
			"write one path for each alternative"},
		{CodeVersionName, true, "a directory of versions/ that is no v and a version", "name it like v1.0.0"},
		{CodeVersionOther, true, "an AGENTS.md of versions/ with another version than its directory's",
			"rename the directory"},
	}
}
