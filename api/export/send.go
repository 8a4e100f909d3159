package export

import (
	"bytes"
	"net/http"
	"time"
)

// writeTimeout is how long a caller may accept no data before it is disconnected. The deadline of the server is for
// answers that end soon.
const writeTimeout = 30 * time.Second

// patient is an answer in which each write has a deadline of its own.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// newPatient returns an answer whose whole may take as long as it needs.
func newPatient(w http.ResponseWriter) *patient {
	return &patient{ResponseWriter: w, control: http.NewResponseController(w)}
}

// Write sends data.
func (p *patient) Write(b []byte) (int, error) {
	p.begun = true
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has one
	return p.ResponseWriter.Write(b)
}

// cut ends the connection before the answer is complete, so that the caller notices.
func (p *patient) cut() { _ = p.control.SetWriteDeadline(time.Unix(1, 0)) }

// sendPart sends bytes, or the range of them that is asked for.
func sendPart(w http.ResponseWriter, r *http.Request, body []byte) {
	http.ServeContent(newPatient(w), r, "", time.Time{}, bytes.NewReader(body))
}
