package repute_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed is the import table of docs/explanation/architecture.md: which of our packages a
// package may import. "*" means all.
var allowed = map[string][]string{
	".":                           {},
	"migrations":                  {},
	"web":                         {},
	"resolver":                    {},
	"resolver/wellknown":          {"resolver"},
	"contracts":                   {".", "contracts/bindings", "contracts/artifacts"},
	"contracts/bindings":          {},
	"contracts/bindings/fixtures": {},
	"contracts/artifacts":         {},
	"contracts/internal":          {".", "contracts", "contracts/artifacts"},
	"manifest":                    {".", "internal/jsonwalk"},
	"manifest/agentjson":          {".", "internal/jsonwalk", "manifest/agentjson/identity", "manifest/agentjson/measure"},
	"manifest/agentjson/measure":  {},
	"manifest/agentjson/identity": {".", "internal/jsonwalk"},
	"manifest/schemas":            {"."},
	"manifest/oaf": {".", "manifest/oaf/frontmatter", "manifest/oaf/problem", "manifest/oaf/skill",
		"manifest/oaf/tree"},
	"manifest/oaf/frontmatter": {"manifest/oaf/problem"},
	"manifest/oaf/harness": {".", "manifest/oaf", "manifest/oaf/frontmatter", "manifest/oaf/problem", "manifest/oaf/skill",
		"manifest/oaf/tree"},
	"manifest/oaf/problem": {"."},
	"manifest/oaf/skill":   {"manifest/oaf/frontmatter", "manifest/oaf/problem", "manifest/oaf/tree"},
	"manifest/oaf/tree":    {".", "manifest/oaf/problem"},
	"policy":               {"."},
	"intent":               {"."},
	"intent/openai":        {"."},
	"intent/sentence":      {},
	"agent":                {".", "agent/capability", "agent/signed", "store", "store/agentdb", "x402"},
	"agent/a2aserver":      {".", "agent", "agent/envelope", "agent/serve", "internal/httpapi", "x402"},
	"agent/capability":     {".", "agent/signed", "internal/strictjson"},
	"agent/compliance":     {".", "agent/governance", "agent/signed", "x402"},
	"agent/envelope":       {".", "agent", "agent/signed", "internal/httpapi", "x402"},
	"agent/remoteserver": {".", "agent", "agent/capability", "agent/envelope", "agent/serve", "agent/signed",
		"internal/httpapi", "orchestrator/remote", "orchestrator/standard"},
	"agent/toolserver": {".", "agent", "agent/capability", "agent/envelope", "agent/serve", "internal/httpapi", "mcp",
		"x402"},
	"agent/config":        {".", "agent/capability", "agent/llm", "agent/llm/modelfile", "internal/strictjson", "policy"},
	"agent/governance":    {".", "internal/strictjson", "policy"},
	"agent/llm":           {".", "internal/jsonwalk"},
	"agent/llm/modelfile": {".", "orchestrator/wallet/keys"},
	"agent/llm/model":     {".", "agent/llm", "agent/llm/modelfile"},
	"agent/llm/oafagent": {".", "agent/capability", "agent/handler", "agent/llm", "agent/llm/model",
		"agent/llm/modelfile", "manifest/oaf", "manifest/oaf/problem", "manifest/oaf/skill",
		"manifest/oaf/tree", "store", "store/agentdb"},
	"orchestrator/oaf": {".", "agent/llm", "agent/llm/oafagent", "manifest/oaf", "orchestrator",
		"orchestrator/journal", "orchestrator/standard"},
	"agent/handler":     {".", "agent/capability", "policy"},
	"agent/publication": {".", "agent", "agent/capability", "manifest/agentjson", "manifest/agentjson/identity", "x402"},
	"agent/registry":    {".", "agent", "contracts", "contracts/bindings", "x402"},
	"agent/reputation":  {".", "agent", "internal/indexclient"},
	"agent/serve":       {".", "agent", "agent/capability", "agent/signed", "internal/httpapi", "store/agentdb", "x402"},
	"agent/signed":      {"."},
	"agent/validation": {".", "agent/capability", "contracts/bindings", "orchestrator/transaction", "store",
		"store/agentdb"},
	"x402":             {},
	"x402/facilitator": {"x402"},
	"mcp":              {".", "internal/httpapi"},
	"store":            {".", "migrations"},
	"store/agentdb":    {".", "store"},
	"store/chaindb":    {".", "store", "store/paydb", "store/trustmark"},
	"store/denydb":     {".", "store", "store/chaindb", "store/docdb", "store/trustmark"},
	"store/docdb":      {".", "store", "store/chaindb", "store/docjson", "store/searchtext", "store/trustmark"},
	"store/docstats":   {".", "store", "store/docdb"},
	"store/pgcopy":     {".", "store"},
	"store/docjson":    {".", "store"},
	"store/eventdb": {".", "store", "store/chaindb", "store/docdb", "store/pgcopy", "store/trustmark",
		"store/verifydb"},
	"store/manifestdb": {".", "store", "store/chaindb", "store/docdb", "store/query"},
	"store/paydb":      {".", "store", "store/docjson", "store/trustmark"},
	"store/query": {".", "store", "store/chaindb", "store/docdb", "store/docjson", "store/eventdb",
		"store/scoredb", "store/trustdb"},
	"store/rundb":      {".", "store", "store/walletdb"},
	"store/searchtext": {".", "store"},
	"store/rootdb":     {".", "store"},
	"store/scoredb":    {".", "store", "store/chaindb"},
	"store/trustdb":    {".", "store", "store/chaindb", "store/docdb", "store/docjson"},
	"store/trustmark":  {".", "store"},
	"store/verifydb":   {".", "store", "store/chaindb"},
	"store/walletdb":   {".", "store", "store/chaindb"},
	"store/historydb":  {".", "store", "store/chaindb", "store/docdb"},
	"store/statsdb":    {".", "store", "store/chaindb", "store/query"},
	"store/importdb":   {".", "store", "store/chaindb", "store/docdb", "store/eventdb", "store/paydb"},
	"store/searchdb": {".", "store", "store/chaindb", "store/docdb", "store/docjson", "store/query",
		"store/searchtext"},
	"devnet": {".", "contracts", "contracts/bindings", "contracts/artifacts"},
	"indexer": {".", "contracts", "store", "store/chaindb", "store/eventdb", "store/importdb", "store/query",
		"store/scoredb", "store/trustdb", "indexer/node", "indexer/node/jsonrpc"},
	"indexer/archive": {".", "contracts", "store", "store/chaindb", "store/importdb",
		"indexer/node"},
	"indexer/documents": {".", "manifest", "resolver", "store", "store/denydb", "store/docdb",
		"store/docstats", "indexer/node"},
	"indexer/manifests": {".", "indexer/node", "manifest/agentjson", "manifest/agentjson/identity", "resolver",
		"resolver/wellknown", "store", "store/docdb", "store/manifestdb"},
	"indexer/node":         {".", "indexer/node/jsonrpc", "indexer/node/limit", "store", "store/chaindb"},
	"indexer/node/jsonrpc": {},
	"indexer/node/limit":   {".", "indexer/node/jsonrpc"},
	"indexer/payments":     {".", "store", "store/paydb", "indexer/node", "indexer/node/jsonrpc"},
	"indexer/verify": {".", "contracts", "store", "store/chaindb", "store/importdb", "store/verifydb",
		"indexer/node", "indexer/node/jsonrpc", "indexer/verify/missing", "indexer/verify/state",
		"indexer/verify/unchecked", "indexer/verify/witness"},
	"indexer/verify/unchecked": {"."},
	"indexer/verify/missing":   {".", "contracts", "store/chaindb", "store/verifydb"},
	"indexer/verify/state": {".", "contracts", "store", "store/chaindb", "store/verifydb", "indexer/node",
		"indexer/node/jsonrpc", "indexer/verify/missing"},
	"indexer/verify/witness": {"indexer/node", "indexer/node/jsonrpc"},
	"trust":                  {".", "trust/fixed", "trust/flow", "trust/rating"},
	"trust/fixed":            {},
	"trust/flow":             {"trust/fixed"},
	"trust/rating":           {".", "trust/fixed", "trust/flow"},
	"trust/graph":            {".", "trust/fixed", "trust/flow", "trust/rating"},
	"trust/explain": {".", "trust", "trust/engine", "trust/fixed", "trust/flow", "trust/graph", "trust/identity",
		"trust/rating", "trust/replay", "trust/rows", "store/query", "store", "store/paydb", "store/rootdb",
		"store/scoredb", "store/trustdb", "internal/cache"},
	"trust/identity": {".", "trust", "trust/fixed", "store/query", "store", "store/trustdb"},
	"trust/replay":   {".", "trust", "trust/fixed", "trust/rating"},
	"trust/engine": {".", "manifest", "store", "store/paydb", "store/query", "store/rootdb", "store/scoredb",
		"store/trustdb", "trust", "trust/fixed", "trust/flow", "trust/graph", "trust/identity", "trust/rating",
		"trust/replay", "trust/rows", "trust/source", "internal/cache"},
	"trust/rows":                {".", "store", "store/trustdb", "trust", "trust/flow", "trust/graph", "trust/rating"},
	"trust/rootfile":            {".", "trust", "trust/rating", "store/rootdb"},
	"trust/source":              {".", "trust/fixed", "trust/flow"},
	"trust/source/read":         {".", "indexer/node", "indexer/node/jsonrpc", "trust/source"},
	"trust/source/read/evmtest": {},
	"trust/statement":           {"."},
	"api": {".", "api/answers", "api/feed", "api/graph", "api/ipfs", "api/wire", "api/wire/stats", "internal/httpapi", "mcp",
		"store", "store/docdb", "store/docstats", "store/query", "store/searchdb", "trust/engine",
		"trust/explain", "trust/statement", "web"},
	"api/answers": {".", "api/wire", "api/wire/stats", "internal/httpapi", "manifest", "policy", "store", "store/chaindb",
		"store/docdb", "store/docstats", "store/historydb", "store/manifestdb", "store/query", "store/searchdb",
		"store/statsdb", "trust",
		"trust/engine", "trust/explain", "trust/identity", "trust/rating", "trust/statement"},
	"api/feed":   {".", "store"},
	"api/finder": {".", "intent", "store", "store/manifestdb"},
	"api/graph": {".", "api/answers", "api/wire", "api/wire/stats", "internal/httpapi", "store", "store/docdb",
		"store/historydb", "store/manifestdb", "store/query", "store/searchdb"},
	"api/ipfs": {".", "internal/httpapi", "store", "store/docdb"},
	"api/wire": {".", "internal/httpapi", "manifest", "manifest/agentjson", "manifest/agentjson/identity",
		"store", "store/manifestdb", "store/searchdb", "trust", "trust/engine", "trust/explain", "trust/fixed",
		"trust/identity", "trust/rating", "trust/replay", "trust/statement"},
	"api/wire/stats": {".", "api/wire", "internal/httpapi", "store/historydb", "store/statsdb", "trust/explain",
		"trust/rating"},
	"orchestrator": {".", "contracts", "orchestrator/approval", "orchestrator/journal",
		"orchestrator/outbound", "orchestrator/quote", "orchestrator/safety", "orchestrator/standard",
		"orchestrator/tasks", "orchestrator/telemetry", "orchestrator/transaction", "orchestrator/trustgate",
		"policy", "store", "store/rundb", "store/scoredb", "store/trustdb", "store/walletdb"},
	"orchestrator/journal":     {},
	"orchestrator/tasks":       {".", "orchestrator/journal", "orchestrator/standard", "store", "store/rundb"},
	"orchestrator/outbound":    {".", "policy"},
	"orchestrator/quote":       {".", "orchestrator/journal", "orchestrator/outbound", "policy"},
	"orchestrator/policyfile":  {".", "policy"},
	"orchestrator/telemetry":   {".", "orchestrator/journal"},
	"orchestrator/transaction": {".", "contracts", "orchestrator/journal", "policy"},
	"orchestrator/standard": {".", "orchestrator/journal", "orchestrator/quote", "orchestrator/transaction",
		"policy", "store/rundb"},
	"orchestrator/safety": {".", "contracts", "orchestrator/journal", "orchestrator/transaction", "store",
		"store/query"},
	"orchestrator/trustgate": {".", "orchestrator/journal", "policy", "store", "store/query", "store/rundb",
		"store/scoredb", "store/trustdb", "trust", "trust/engine", "trust/explain", "trust/fixed",
		"trust/identity", "trust/replay"},
	"orchestrator/approval": {".", "contracts", "orchestrator/journal", "orchestrator/safety",
		"orchestrator/transaction", "orchestrator/trustgate", "policy", "store", "store/query", "store/walletdb"},
	"orchestrator/audit": {".", "orchestrator/journal", "orchestrator/standard", "orchestrator/transaction",
		"orchestrator/trustgate", "policy", "store/rundb"},
	"orchestrator/wallet/keys": {".", "indexer/node"},
	"orchestrator/wallet/rules": {".", "contracts", "contracts/bindings", "orchestrator/safety",
		"orchestrator/transaction", "orchestrator/wallet/keys",
		"store/walletdb", "x402"},
	"orchestrator/wallet": {".", "orchestrator/wallet/keys", "orchestrator/wallet/rules", "contracts",
		"contracts/bindings", "indexer/node",
		"store", "store/rundb", "store/walletdb", "orchestrator/safety", "orchestrator/transaction", "x402"},
	"orchestrator/intentcall": {".", "manifest/agentjson", "orchestrator/outbound", "orchestrator/payer",
		"resolver/wellknown"},
	"orchestrator/payer": {".", "internal/indexclient", "orchestrator/outbound", "policy", "store", "store/walletdb",
		"x402"},
	"orchestrator/settlement": {".", "orchestrator/transaction", "orchestrator/wallet", "store", "store/walletdb", "x402"},
	"orchestrator/operate": {".", "contracts", "contracts/bindings", "store", "store/rundb", "store/walletdb",
		"orchestrator/approval", "orchestrator/transaction", "orchestrator/trustgate",
		"orchestrator/wallet", "orchestrator/wallet/rules", "policy"},
	"orchestrator/control": {".", "api/wire", "internal/httpapi", "mcp", "orchestrator",
		"orchestrator/approval", "orchestrator/audit", "orchestrator/control/agentlog",
		"orchestrator/control/rest", "orchestrator/control/treasury", "orchestrator/operate",
		"orchestrator/remote", "orchestrator/standard", "orchestrator/tasks", "orchestrator/trustgate",
		"policy", "store", "store/chaindb", "store/query", "store/rundb", "store/scoredb", "store/trustdb",
		"trust/engine", "trust/explain", "trust/statement"},
	"orchestrator/control/agentlog": {".", "orchestrator/control/rest", "orchestrator/standard", "store", "store/rundb"},
	"orchestrator/control/rest":     {".", "internal/httpapi", "mcp"},
	"orchestrator/control/treasury": {".", "internal/httpapi", "mcp", "orchestrator/control/rest", "orchestrator/operate",
		"orchestrator/transaction", "store", "store/walletdb"},
	"orchestrator/remote": {".", "orchestrator", "orchestrator/outbound", "orchestrator/standard",
		"orchestrator/transaction", "policy"},
	"orchestrator/agents": {".", "contracts/bindings", "manifest", "orchestrator", "orchestrator/outbound",
		"orchestrator/quote", "orchestrator/remote", "orchestrator/standard", "orchestrator/transaction",
		"resolver"},
	"internal/bench": {".", "devnet", "indexer/documents", "internal/bench/harness", "internal/chainserver",
		"internal/pg", "internal/synth", "orchestrator", "orchestrator/policyfile", "orchestrator/standard",
		"orchestrator/tasks", "policy", "store", "store/chaindb", "store/eventdb", "store/importdb"},
	"internal/bench/harness": {"internal/pg", "store"},
	"internal/bench/agentbench": {".", "agent", "agent/capability", "agent/serve", "agent/signed",
		"internal/bench/harness", "orchestrator/wallet/keys", "store", "store/agentdb", "x402",
		"x402/facilitator"},
	"internal/bench/manifestbench": {".", "intent", "intent/sentence", "internal/bench/harness", "manifest/agentjson",
		"manifest/agentjson/identity"},
	"internal/bench/trustbench": {".", "indexer/node", "internal/attack", "internal/bench",
		"internal/bench/harness", "internal/chainserver", "trust", "trust/fixed", "trust/flow", "trust/rating",
		"trust/source", "trust/source/read"},
	"internal/killtest":    {},
	"internal/indexclient": {"."},
	"internal/strictjson":  {"."},
	"internal/cache":       {"."},
	"internal/jsonwalk":    {},
	"internal/chainserver": {},
	"internal/attack":      {".", "trust", "trust/fixed", "trust/flow", "trust/graph", "trust/rating", "trust/source"},
	"internal/httpapi":     {"."},
	"internal/pg":          {},
	"internal/pgtest":      {"*"},
	"internal/rpctest":     {"*"},
	"internal/paytest":     {"*"},
	"internal/sitetest":    {"*"},
	"internal/modeltest":   {},
	"internal/tracing":     {},
	"internal/population":  {".", "devnet", "internal/attack"},
	"internal/eventlog":    {".", "contracts", "contracts/bindings"},
	"internal/synth":       {".", "contracts", "contracts/bindings", "internal/chainserver", "internal/eventlog"},
	"cmd/bench": {".", "internal/bench", "internal/bench/agentbench", "internal/bench/harness",
		"internal/bench/manifestbench", "internal/bench/trustbench"},
	"cmd/demo": {".", "api/wire", "contracts/bindings", "contracts/bindings/fixtures", "devnet",
		"internal/httpapi", "internal/modeltest", "internal/pg", "internal/population", "manifest",
		"orchestrator/agents", "orchestrator/control", "orchestrator/operate", "policy", "store",
		"store/rootdb", "trust/statement"},
	"cmd/repute": {"*"},
	"cmd/repute/internal/agents": {".", "agent", "agent/a2aserver", "agent/capability", "agent/compliance",
		"agent/config", "agent/governance", "agent/handler", "agent/llm/oafagent", "agent/publication",
		"agent/registry", "agent/remoteserver", "agent/reputation", "agent/serve", "agent/signed",
		"agent/toolserver", "agent/validation", "cmd/repute/internal/cli", "cmd/repute/internal/config",
		"contracts", "internal/tracing", "manifest/agentjson/identity", "orchestrator/settlement",
		"orchestrator/wallet", "orchestrator/wallet/keys", "resolver", "store", "store/agentdb", "x402",
		"x402/facilitator"},
	"cmd/repute/internal/config": {".", "agent/llm/modelfile", "contracts", "indexer", "indexer/node",
		"indexer/payments", "intent", "intent/openai", "intent/sentence", "internal/httpapi", "internal/pg",
		"internal/strictjson", "orchestrator/agents", "orchestrator/control", "orchestrator/policyfile",
		"orchestrator/safety", "orchestrator/wallet", "orchestrator/wallet/keys", "orchestrator/wallet/rules",
		"policy", "resolver", "trust", "trust/engine", "trust/explain", "trust/rating", "trust/rootfile",
		"trust/source", "trust/statement"},
	"cmd/repute/internal/cli": {".", "cmd/repute/internal/config", "contracts", "indexer/documents",
		"internal/pg", "store", "store/query", "store/searchdb", "resolver"},
	"cmd/repute/internal/clitest": {"cmd/repute/internal/cli"},
	"cmd/repute/internal/crawl": {".", "cmd/repute/internal/cli", "cmd/repute/internal/config", "resolver", "store",
		"store/manifestdb"},
	"cmd/repute/internal/progress": {"."},
	"cmd/repute/internal/oaf": {".", "cmd/repute/internal/cli", "manifest/oaf", "manifest/oaf/harness", "manifest/oaf/problem",
		"manifest/oaf/tree"},
	"cmd/repute/internal/intents": {".", "cmd/repute/internal/cli", "cmd/repute/internal/config",
		"cmd/repute/internal/payments", "cmd/repute/internal/service", "intent", "intent/sentence", "manifest/agentjson",
		"orchestrator/intentcall", "orchestrator/payer", "resolver", "resolver/wellknown", "store"},
	"cmd/repute/internal/payments": {".", "agent/signed", "cmd/repute/internal/cli",
		"cmd/repute/internal/config", "cmd/repute/internal/service", "contracts/bindings",
		"orchestrator/payer", "orchestrator/settlement", "orchestrator/transaction", "orchestrator/wallet",
		"store", "store/walletdb", "x402", "x402/facilitator"},
	"cmd/repute/internal/scores": {".", "api/answers", "api/wire", "cmd/repute/internal/cli",
		"cmd/repute/internal/config", "cmd/repute/internal/service", "contracts", "internal/httpapi", "store",
		"store/chaindb", "store/query", "store/rootdb", "store/scoredb", "store/trustdb", "trust",
		"trust/engine", "trust/explain", "trust/rating", "trust/replay", "trust/rootfile", "trust/source",
		"trust/source/read"},
	"cmd/repute/internal/service": {".", "agent/llm/oafagent", "api", "api/finder",
		"cmd/repute/internal/config", "cmd/repute/internal/progress", "indexer", "indexer/documents",
		"indexer/manifests", "indexer/node", "indexer/payments", "indexer/verify", "internal/httpapi",
		"internal/tracing", "mcp", "orchestrator", "orchestrator/agents", "orchestrator/control",
		"orchestrator/intentcall", "orchestrator/oaf", "orchestrator/operate", "orchestrator/payer",
		"orchestrator/remote", "orchestrator/safety", "orchestrator/tasks", "orchestrator/telemetry",
		"orchestrator/transaction", "orchestrator/wallet", "resolver", "resolver/wellknown", "store",
		"store/chaindb", "trust/engine", "trust/explain", "trust/source", "trust/source/read", "x402"},
	"cmd/repute/internal/tasks": {".", "cmd/repute/internal/cli", "cmd/repute/internal/config",
		"cmd/repute/internal/service", "internal/httpapi", "orchestrator", "orchestrator/agents",
		"orchestrator/control", "orchestrator/remote", "orchestrator/standard", "orchestrator/tasks",
		"orchestrator/wallet/keys", "policy", "store", "store/rundb", "trust/engine", "trust/explain",
		"trust/statement"},
	"cmd/repute/internal/files": {".", "api/wire", "cmd/repute/internal/cli", "cmd/repute/internal/config",
		"indexer/documents", "internal/jsonwalk", "manifest", "manifest/agentjson",
		"manifest/agentjson/identity", "manifest/schemas", "resolver", "resolver/wellknown", "store",
		"store/chaindb", "store/denydb", "store/docdb", "store/docstats", "store/query"},
}

// testOnly packages must not be imported by product code. The demo's chain has a token of fixtures.
var testOnly = []string{"contracts/bindings/fixtures", "internal/pgtest", "internal/rpctest", "internal/paytest",
	"internal/sitetest"}

func TestImportTable(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "." && (name[0] == '.' || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		seen++
		checkImports(t, path)
		return nil
	})
	if err != nil || seen == 0 {
		t.Fatalf("read %d files: %v", seen, err)
	}
}

func checkImports(t *testing.T, path string) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	pkg := filepath.ToSlash(filepath.Dir(path))
	may, known := allowed[pkg]
	if strings.HasPrefix(pkg, "contracts/internal/") {
		may, known = allowed["contracts/internal"], true
	}
	if !known {
		t.Errorf("%s: package %s is not in the import table", path, pkg)
		return
	}
	for _, spec := range f.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		ours, ok := strings.CutPrefix(name+"/", "repute/")
		if !ok {
			continue
		}
		if ours = strings.TrimSuffix(ours, "/"); ours == "" {
			ours = "."
		}
		if slices.Contains(testOnly, ours) && !slices.Contains(testOnly, pkg) && pkg != "cmd/demo" {
			t.Errorf("%s imports %s, which is for tests only", path, ours)
		}
		if !slices.Contains(may, ours) && !slices.Contains(may, "*") {
			t.Errorf("%s: package %s may not import %s", path, pkg, ours)
		}
	}
}
