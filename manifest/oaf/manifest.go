package oaf

import (
	"repute/manifest/oaf/frontmatter"
	"repute/manifest/oaf/problem"
	"repute/manifest/oaf/skill"
)

// defaultValue stands in the format for a memory block without text.
const defaultValue = "default"

// bareStructured is what published agents write as entrypoint at the top level, for the form of their body.
const bareStructured = "structured"

// readManifest takes the members of the frontmatter. Whether they are right is checked afterwards.
func readManifest(o *frontmatter.Object) *Agent {
	a := &Agent{
		Name:        o.Text("name"),
		VendorKey:   o.Text("vendorKey"),
		AgentKey:    o.Text("agentKey"),
		Version:     version(o),
		Slug:        o.Text("slug"),
		Description: o.Text("description"),
		Author:      o.Text("author"),
		License:     o.Text("license"),
		Tags:        o.Texts("tags"),
		Tools:       toolNames(o.Restricting(), "tools"),
		Config:      readConfig(o.Restricting().Object("config")),
		Model:       readModel(o),
		Harness:     o.Object("harnessConfig").Members(),
	}
	a.readReferences(o)
	a.Orchestration = readOrchestration(o)
	a.Memory = readMemory(o.Object("memory"))
	a.Extra = o.Rest()
	a.Unknown = o.Unknown(problem.CodeMember, manifestMembers())
	return a
}

// version reads the version by its characters, and reports a number.
func version(o *frontmatter.Object) string {
	v := o.Text("version")
	if o.IsNumber("version") {
		o.Report(problem.CodeUnquoted, "version", "%.80s has no quotes, so that other readers may change it", v)
	}
	return v
}

// toolNames reads a list of tools, also one text with commas between them.
func toolNames(o *frontmatter.Object, key string) []string {
	if o.IsText(key) {
		return append([]string{}, skill.Tools(o.Text(key))...)
	}
	return o.Texts(key)
}

// readReferences reads the lists of references in both dialects. Lines are kept, so that later checks can place problems.
func (a *Agent) readReferences(o *frontmatter.Object) {
	for _, in := range o.Objects("skills", "name") {
		ref := SkillRef{Vendor: in.Text("vendor"), Name: in.Text("skill"), Version: version(in), Source: in.Text("source"),
			Required: in.Bool("required", false), line: in.At("").Line}
		if ref.Name == "" {
			ref.Name = in.Text("name")
		}
		a.Skills = append(a.Skills, ref)
	}
	for _, in := range o.Objects("packs", "pack") {
		a.Packs = append(a.Packs, PackRef{Vendor: in.Text("vendor"), Pack: in.Text("pack"), Version: version(in),
			Required: in.Bool("required", false)})
	}
	for _, in := range o.Objects("weblets", "weblet") {
		a.Weblets = append(a.Weblets, WebletRef{Vendor: in.Text("vendor"), Weblet: in.Text("weblet"), Version: version(in),
			Launch: in.Text("launch")})
	}
	for _, in := range o.Objects("mcpServers", "server") {
		a.MCPServers = append(a.MCPServers, ServerRef{Vendor: in.Text("vendor"), Server: in.Text("server"),
			Version:   version(in),
			ConfigDir: in.Text("configDir"), Required: in.Bool("required", false), line: in.At("").Line})
	}
	for _, in := range o.Objects("agents", "agent") {
		a.Agents = append(a.Agents, AgentRef{Vendor: in.Text("vendor"), Agent: in.Text("agent"), Version: version(in),
			Role: in.Text("role"), Delegations: in.Texts("delegations"), Required: in.Bool("required", false),
			line: in.At("").Line, Extra: in.Rest()})
	}
}

// readConfig reads config. Zero and absent differ for the temperature, of which 0 is a usual value.
func readConfig(o *frontmatter.Object) Config {
	limits := o.Restricting()
	c := Config{MaxTokens: o.Whole("max_tokens"), RequireConfirmation: limits.Bool("require_confirmation", false)}
	if t, ok := o.Number("temperature"); ok {
		c.Temperature = &t
	}
	if tools := limits.Object("tools").Restricting(); tools != nil {
		c.Allowed, c.Denied = toolNames(tools, "allowed"), toolNames(tools, "denied")
	}
	c.Extra = o.Rest()
	return c
}

// readModel reads the model: a text is an alias, an object names the provider.
func readModel(o *frontmatter.Object) Model {
	if !o.IsObject("model") {
		return Model{Alias: o.Text("model")}
	}
	in := o.Object("model")
	return Model{Provider: in.Text("provider"), Name: in.Text("name"), Embedding: in.Text("embedding"), Extra: in.Rest()}
}

// readOrchestration reads orchestration, and the entrypoint at the top level that published agents have.
func readOrchestration(o *frontmatter.Object) Orchestration {
	in := o.Object("orchestration")
	out := Orchestration{Entrypoint: in.Text("entrypoint"), Fallback: in.Text("fallback")}
	for _, t := range in.Objects("triggers", "event") {
		out.Triggers = append(out.Triggers, Trigger{Event: t.Text("event"), Action: t.Text("action")})
	}
	if bare := o.Text("entrypoint"); bare != "" {
		o.Report(problem.CodeBareEntry, "entrypoint", "%.80q is at the top level", bare)
		if out.Entrypoint == "" && bare != bareStructured {
			out.Entrypoint = bare
		}
	}
	return out
}

// readMemory reads memory, nil without the section: an agent without memory differs from one whose memory has no blocks.
func readMemory(o *frontmatter.Object) *Memory {
	if o == nil {
		return nil
	}
	m := &Memory{Type: o.Text("type")}
	if m.Type == "" {
		m.Type = MemoryEditable
	}
	blocks := o.Object("blocks")
	for _, label := range blocks.Keys() {
		m.Blocks = append(m.Blocks, readBlock(blocks, label))
	}
	return m
}

// readBlock reads a block: a text is its value, an object also has a description and a limit. The placeholder of the format
// is no value.
func readBlock(blocks *frontmatter.Object, label string) MemoryBlock {
	b := MemoryBlock{Label: label}
	if in := blocks; !in.IsObject(label) {
		b.Value = in.Text(label)
	} else {
		in = in.Object(label)
		b.Value, b.Description, b.Limit = in.Text("value"), in.Text("description"), in.Whole("limit")
	}
	if b.Value == defaultValue {
		b.Value = ""
	}
	return b
}
