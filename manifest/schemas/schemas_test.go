package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"repute"
	"repute/manifest/schemas"
)

const capability = `{"schema":"https://openfi.dev/schemas/agent/v1","name":"A","slug":"a-b","version":"0.1.0","description":"","capabilities":[],"tools":[],
	"computeConstraints":{"maxSteps":10,"maxToolCalls":50,"maxRuntimeMs":300000,"maxOnchainWrites":5},"taskCategories":["general"],
	"safety":{"requiresDryRun":true,"requiresVerification":true,"maxOnchainWritesPerRun":5},"erc8004":{"agentRegistry":"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432","agentId":22}}`

// Each change of a good file is found at its place.
func TestCheckNamesThePlace(t *testing.T) {
	t.Parallel()
	if found, err := schemas.Check(schemas.CapabilityDocument, []byte(capability)); err != nil || len(found) > 0 {
		t.Fatalf("a good file: %v %v", found, err)
	}
	for name, c := range map[string]struct{ old, new, path string }{
		"slug":     {`"a-b"`, `"A B"`, "/slug"},
		"negative": {`"maxSteps":10`, `"maxSteps":-1`, "/computeConstraints/maxSteps"},
		"type":     {`"tools":[]`, `"tools":{}`, "/tools"},
		"missing":  {`"version":"0.1.0",`, ``, ""},
		"id":       {`"agentId":22`, `"agentId":"x"`, "/erc8004/agentId"},
		"no JSON":  {`{"schema"`, `<html>`, ""},
	} {
		found, err := schemas.Check(schemas.CapabilityDocument, []byte(strings.Replace(capability, c.old, c.new, 1)))
		if err != nil || len(found) != 1 || found[0].Path != c.path || found[0].Severity != repute.SeverityError {
			t.Errorf("%s: %+v %v", name, found, err)
		}
	}
}

// A file is told by the schema it names; of other kinds there is no schema.
func TestDetect(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]repute.DocumentKind{
		capability: schemas.CapabilityDocument,
		`{"schema":"https://openfi.dev/schemas/agent-log/v1"}`: schemas.LogDocument,
		`{"schema":7}`: repute.UnknownDocument,
		`[]`:           repute.UnknownDocument,
		``:             repute.UnknownDocument,
	} {
		if kind, ok := schemas.Detect([]byte(text)); kind != want || ok != (want != repute.UnknownDocument) {
			t.Errorf("%.60s is %s", text, kind)
		}
	}
	if _, err := schemas.Check(repute.FeedbackDocument, []byte(`{}`)); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("feedback: %v", err)
	}
}

// No bytes make the check fail other than by problems.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(capability))
	f.Add([]byte(`{"schema":"https://openfi.dev/schemas/agent-log/v1","agent":{},"runs":[{"plan":[null]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []repute.DocumentKind{schemas.CapabilityDocument, schemas.LogDocument,
			repute.RegistrationDocument} {
			if _, err := schemas.Check(kind, b); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}
