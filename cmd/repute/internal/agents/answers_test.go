package agents_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute/contracts/bindings"
	"repute/internal/paytest"
)

// TestAnswersAsValidator: a request on the chain that names the agent's account is judged by the handler of the
// capability and answered on the chain, once, also when it was made while no process ran and the agent starts
// anew.
func TestAnswersAsValidator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, other := w.Chain(), w.Account(paytest.StrangerAccount)
	by := w.Account(paytest.SettlerAccount)
	judge := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var call struct {
			Input struct {
				About   string
				Request struct{ Quality int }
			}
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &call); err != nil || !strings.HasSuffix(call.Input.About, "1") {
			t.Errorf("%s: %v", body, err)
		}
		out.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(out, `{"response":%d,"tag":"code","report":"read"}`, call.Input.Request.Quality)
	}))
	t.Cleanup(judge.Close)
	settler := filepath.Join(w.dir, "settler")
	ok(t, os.WriteFile(settler, []byte(hex.EncodeToString(crypto.FromECDSA(by.Key))), 0o600))
	main := fmt.Sprintf(mainFile, c.Identity, c.Reputation, w.RPCURL(), w.Token, settler)
	w.main = w.file(t, "repute.yaml", strings.Replace(main, "start_block: 1,",
		fmt.Sprintf("start_block: 1, validations: [%q],", c.Validations[0]), 1))
	handler, _, _ := worker(t)
	text, err := os.ReadFile(w.agentFile(t, "0", w.key, "validation: {answerer: settler}", handler))
	ok(t, err)
	edited := strings.Replace(string(text), "  id: 0", fmt.Sprintf("  id: 0\n  validations: %q", c.Validations[0]), 1)
	file := w.file(t, "agent.yaml", strings.TrimSpace(edited)+"\n    validates: {http: \""+judge.URL+"\"}\n")

	ask := func(quality int) common.Hash {
		t.Helper()
		document := fmt.Sprintf(`{"capability":"report","quality":%d}`, quality)
		hash := crypto.Keccak256Hash([]byte(document))
		b := w.Batch()
		b.ValidationRequest(other, by.Address, 1, "data:application/json;base64,"+
			base64.StdEncoding.EncodeToString([]byte(document)), hash)
		_, err := b.Mine(t.Context())
		ok(t, err)
		return hash
	}
	b := w.Batch()
	b.Register(other, "https://other.example/registration.json")
	_, err = b.Mine(t.Context())
	ok(t, err)
	_, out, stop := w.serve(t, file)
	asked := []common.Hash{ask(70)}
	registry := bindings.NewValidationRegistry()
	await := func(hash common.Hash, want uint8) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(300 * time.Millisecond) {
			raw, err := w.Client().CallContract(t.Context(), ethereum.CallMsg{To: &c.Validations[0],
				Data: registry.PackGetValidationStatus(hash)}, nil)
			ok(t, err)
			s, err := registry.UnpackGetValidationStatus(raw)
			ok(t, err)
			if s.ResponseHash != [32]byte{} {
				if s.Response != want || s.Tag != "code" {
					t.Errorf("%+v", s)
				}
				return
			}
			if time.Now().After(end) {
				t.Fatalf("request %s is not answered: %s", hash, out)
			}
		}
	}
	await(asked[0], 70)
	ok(t, stop())
	asked = append(asked, ask(0)) // while no process runs; 0 is an answer too
	_, out, stop = w.serve(t, file)
	await(asked[1], 0)
	for end := time.Now().Add(time.Minute); !strings.Contains(out.String(), "request to validate answered"); {
		if time.Now().After(end) {
			t.Fatalf("the log has no answer: %s", out)
		}
		time.Sleep(100 * time.Millisecond)
	}
	ok(t, stop())
	answers, err := w.Client().FilterLogs(t.Context(),
		ethereum.FilterQuery{Addresses: c.Validations, Topics: [][]common.Hash{
			{registry.GetABI().Events["ValidationResponse"].ID}}})
	ok(t, err)
	if len(answers) != len(asked) {
		t.Errorf("%d answers on the chain to %d requests: %+v", len(answers), len(asked), answers)
	}
}
