package oaf

import (
	"slices"

	"repute/manifest/oaf/frontmatter"
)

// harnessRepute is this project's section of harnessConfig. Those of other harnesses are open.
const harnessRepute = "/harnessConfig/repute"

// manifestMembers returns the members of the frontmatter of AGENTS.md, in both dialects.
func manifestMembers() frontmatter.Members {
	return frontmatter.Members{
		"": {Names: []string{"name", "vendorKey", "agentKey", "version", "slug", "description", "author", "license", "tags",
			"skills", "packs", "weblets", "mcpServers", "agents", "orchestration", "entrypoint", "tools", "config", "memory",
			"model", "harnessConfig"}, Restricts: []string{"config", "tools"}},
		"/skills/*":     {Names: []string{"name", "vendor", "skill", "version", "source", "required"}},
		"/packs/*":      {Names: []string{"vendor", "pack", "version", "required"}},
		"/weblets/*":    {Names: []string{"vendor", "weblet", "version", "launch"}},
		"/mcpServers/*": {Names: []string{"vendor", "server", "version", "configDir", "required"}},
		// The last three name a registered agent, which needs no directory.
		"/agents/*": {Names: []string{"vendor", "agent", "version", "role", "delegations", "required", "agentId", "chain",
			"registry"}, Restricts: []string{"agentId", "chain", "registry"}},
		"/orchestration":            {Names: []string{"entrypoint", "fallback", "triggers"}},
		"/orchestration/triggers/*": {Names: []string{"event", "action"}},
		"/config": {Names: []string{"temperature", "max_tokens", "require_confirmation", "tools"},
			Restricts: []string{"require_confirmation", "tools"}},
		"/config/tools":    {Names: []string{"allowed", "denied"}, Restricts: []string{"allowed", "denied"}},
		"/memory":          {Names: []string{"type", "blocks"}, Restricts: []string{"type"}},
		"/memory/blocks/*": {Names: []string{"value", "description", "limit"}},
		"/model":           {Names: []string{"provider", "name", "embedding"}},
		harnessRepute: {Names: []string{"agentId", "chain", "registry", "maxTokens", "maxCostUsd", "maxTurns", "readOnlyTools",
			"idempotentTools"},
			Restricts: []string{"agentId", "chain", "registry", "maxTokens", "maxCostUsd", "maxTurns"}},
	}
}

// identityMembers returns the members of both files of an MCP server that say which one it is; name is of the other
// dialect.
func identityMembers() []string { return []string{"vendor", "server", "version", "name"} }

// selectionMembers returns the members of ActiveMCP.json, in both dialects. The settings of tools are open.
func selectionMembers() frontmatter.Members {
	restricting := []string{"selectedTools", "excludedTools", "contextStrategy", "enabled_tools", "disabled_tools"}
	return frontmatter.Members{
		"":        {Names: slices.Concat(identityMembers(), restricting, []string{"tool_config"}), Restricts: restricting},
		"/server": {Names: identityMembers()},
		"/selectedTools/*": {Names: []string{"name", "enabled", "description", "required"},
			Restricts: []string{"enabled"}},
		"/excludedTools/*":  {Names: []string{"name"}},
		"/disabled_tools/*": {Names: []string{"name"}},
	}
}

// configMembers returns the members of config.yaml, in both dialects. The format leaves further permissions and limits
// to servers.
func configMembers() frontmatter.Members {
	connection := []string{"type", "url", "command", "args", "env", "headers", "timeout", "transport"}
	names := []string{"requests_per_minute", "burst", "requests_per_second", "requests_per_hour", "burst_size"}
	limits := frontmatter.Known{Open: true, Names: names, Restricts: names}
	return frontmatter.Members{
		"": {Names: slices.Concat(identityMembers(), []string{"connection", "auth", "permissions", "rate_limit",
			"description", "authentication", "rate_limiting", "retry", "health_check"}),
			Restricts: []string{"permissions", "rate_limit", "rate_limiting"}},
		"/server":         {Names: slices.Concat(identityMembers(), connection)},
		"/connection":     {Names: connection},
		"/auth":           {Names: []string{"type", "token", "header"}},
		"/authentication": {Names: []string{"type", "token", "header", "env_var"}},
		"/permissions": {Open: true, Names: []string{"allow_paths", "deny_paths", "max_file_size", "read_only", "read", "write"},
			Restricts: []string{"allow_paths", "deny_paths", "max_file_size", "read_only", "read", "write"}},
		"/rate_limit":    limits,
		"/rate_limiting": limits,
	}
}

// packageMembers returns the members of PACKAGE.yaml, in its three dialects.
func packageMembers() frontmatter.Members {
	return frontmatter.Members{
		"": {Names: []string{"format", "formatVersion", "version", "agents", "contents", "name", "contents_mode",
			"description", "author", "license"}},
		"/agents/*": {Names: []string{"slug", "version", "path", "vendorKey", "agentKey", "name"}},
		"/contents": {Names: []string{"mode"}},
	}
}
