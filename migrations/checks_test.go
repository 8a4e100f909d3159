package migrations_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/indexer/documents"
	"repute/internal/pgtest"
	"repute/store/changedata"
	"repute/store/hourdb"
)

// constants returns the values of the text constants in the package of a directory, below the module's root, whose
// name or type matches an expression.
func constants(t *testing.T, dir, expression string) (values []string) {
	t.Helper()
	match := regexp.MustCompile("^(?:" + expression + ")$")
	for _, spec := range constSpecs(t, dir) {
		kind, _ := spec.Type.(*ast.Ident)
		for i, name := range spec.Names {
			if !match.MatchString(name.Name) && (kind == nil || !match.MatchString(kind.Name)) ||
				i >= len(spec.Values) {
				continue
			}
			if v, isText := spec.Values[i].(*ast.BasicLit); isText && v.Kind == token.STRING {
				text, err := strconv.Unquote(v.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
		}
	}
	if len(values) == 0 {
		t.Fatalf("no constant in %s matches %s", dir, expression)
	}
	return values
}

// constSpecs returns the declarations of constants in the package of a directory.
func constSpecs(t *testing.T, dir string) (specs []*ast.ValueSpec) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, isDecl := d.(*ast.GenDecl); isDecl && g.Tok == token.CONST {
				for _, s := range g.Specs {
					specs = append(specs, s.(*ast.ValueSpec))
				}
			}
		}
	}
	return specs
}

// literals returns what an expression captures in the source of packages.
func literals(t *testing.T, expression string, dirs ...string) (values []string) {
	t.Helper()
	match := regexp.MustCompile(expression)
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, m := range match.FindAllStringSubmatch(string(source), -1) {
				values = append(values, m[1])
			}
		}
	}
	return values
}

// numbers returns the numbers between two, both included, as text.
func numbers(from, to int) (values []string) {
	for n := from; n <= to; n++ {
		values = append(values, strconv.Itoa(n))
	}
	return values
}

// The kinds of changes that callers may ask for are all there are, and the statements that name one name one of them.
func TestChangeKinds(t *testing.T) {
	t.Parallel()
	declared, told := constants(t, "store/changedata", "Kind[A-Z].*"), changedata.Kinds()
	slices.Sort(declared)
	slices.Sort(told)
	if !slices.Equal(declared, told) {
		t.Errorf("kinds %v, declared are %v", told, declared)
	}
	named := literals(t, `'([a-z]+\.updated)', 0, 0`, "store/docdb", "store/manifestdb")
	if len(named) == 0 {
		t.Error("no statement was found")
	}
	for _, kind := range named {
		if !slices.Contains(told, kind) {
			t.Errorf("%s is no kind", kind)
		}
	}
}

// Each column with a closed set of values has a CHECK, which allows exactly the values that the program has.
func TestChecksAreTheConstants(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	kinds := numbers(int(repute.KindTransfer), int(repute.KindTreasuryEvent))
	orNone := func(values []string) []string { return append([]string{""}, values...) }
	fetchReasons, sources := orNone(documents.Reasons()), orNone(constants(t, "resolver", "Source"))
	for column, want := range map[string][]string{
		"events.kind": kinds,
		"gaps.kind":   kinds,
		"pending.reason": slices.Concat(constants(t, "store/chaindb", "WaitsFor.*|IgnoredForeign"),
			constants(t, "store/eventdb", "ignored.*"), constants(t, ".", "UndecodedReason")),
		"endpoints.state":      constants(t, ".", "EndpointState"),
		"changes.kind":         constants(t, "store/changedata", "Kind[A-Z].*"),
		"hours.series":         numbers(int(hourdb.Registrations), int(hourdb.Validations)),
		"uris.kind":            constants(t, "resolver", "Kind"),
		"uris.source":          sources,
		"uris.reason":          fetchReasons,
		"fetches.source":       sources,
		"fetches.reason":       fetchReasons,
		"manifests.state":      constants(t, "store/manifestdb", "State"),
		"manifests.reason":     append(fetchReasons, constants(t, "store/manifestdb", "ReasonRobots")...),
		"manifests.format":     orNone(constants(t, "manifest/agentjson", "Format")),
		"denied.kind":          constants(t, ".", "DenyKind"),
		"trust_scores.status":  constants(t, ".", "Status"),
		"trust_finals.status":  constants(t, ".", "Status"),
		"payments.state":       constants(t, ".", "PaymentState"),
		"payments.reason":      orNone(constants(t, ".", "PaymentReason")),
		"modules.proof_kind":   orNone(constants(t, ".", "ProofKind")),
		"tasks.status":         constants(t, ".", "TaskStatus"),
		"runs.status":          constants(t, ".", "RunStatus"),
		"runs.awaiting":        orNone([]string{repute.AwaitingApproval}),
		"run_phases.status":    constants(t, ".", "PhaseStatus"),
		"run_calls.kind":       constants(t, ".", "CallKind"),
		"run_decisions.kind":   constants(t, ".", "DecisionKind"),
		"run_decisions.effect": constants(t, "policy", "Effect"),
		"run_events.kind": append(constants(t, "store/rundb", "runFinished"),
			literals(t, `(?:RunEvent\{[^}]*?Kind: +|[nN]ewEvent\([^"]*?, )"([a-z.]+)"`, "store/rundb", "orchestrator",
				"orchestrator/lifecycle")...),
		"acts.kind": append(constants(t, "orchestrator/operate", "kind[A-Z].*"),
			constants(t, "store/walletdb", "purchaseKind")...),
		"intents.state":       constants(t, "store/walletdb", "IntentState"),
		"runs.phase":          numbers(0, len(repute.Phases())),
		"run_phases.phase":    numbers(1, len(repute.Phases())),
		"run_decisions.phase": numbers(0, len(repute.Phases())),
	} {
		if got, want := allowed(t, conn, column), distinct(want); !slices.Equal(got, want) {
			t.Errorf("%s allows %q, the program has %q", column, got, want)
		}
	}
}

// distinct returns the values in order, each once.
func distinct(values []string) []string {
	set := map[string]bool{}
	for _, v := range values {
		set[v] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// allowed returns the values that the CHECK of a column of text or of a range of numbers allows.
func allowed(t *testing.T, conn *pgx.Conn, column string) []string {
	t.Helper()
	table, name, _ := strings.Cut(column, ".")
	var check string
	err := conn.QueryRow(t.Context(), `
		select coalesce(string_agg(pg_get_constraintdef(c.oid), ' '), '') from pg_constraint c
		join pg_attribute a on a.attrelid = c.conrelid and c.conkey = array[a.attnum]
		where c.contype = 'c' and c.conrelid = $1::regclass and a.attname = $2`, table, name).Scan(&check)
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`>= (\d+)\).*<= (\d+)\)`).FindStringSubmatch(check); m != nil {
		from, _ := strconv.Atoi(m[1])
		to, _ := strconv.Atoi(m[2])
		return distinct(numbers(from, to))
	}
	var values []string
	for _, m := range regexp.MustCompile(`'([^']*)'::text`).FindAllStringSubmatch(check, -1) {
		values = append(values, m[1])
	}
	return distinct(values)
}
