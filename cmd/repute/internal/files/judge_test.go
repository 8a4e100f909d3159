package files

import (
	"testing"

	"repute"
	"repute/manifest"
)

// An agent whose URI leads to a web page has a report, though no registration.
func TestJudgeAgentOfPage(t *testing.T) {
	t.Parallel()
	_, problems := manifest.Parse([]byte("<html>"))
	report, err := judgeAgent(repute.Agent{Document: repute.Document{Status: repute.DocumentInvalid,
		Problems: problems}})
	if err != nil || report.Errors != 1 || report.Link != "" {
		t.Errorf("%+v, %v", report, err)
	}
	if _, err := judgeAgent(repute.Agent{Document: repute.Document{Status: repute.DocumentPending}}); err == nil {
		t.Error("a report on a file that was never read")
	}
}
