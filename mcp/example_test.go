package mcp_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"repute/mcp"
)

// A tool is a function with a typed input and output. The schema that a model sees is made
// from the types.
func ExampleAdd() {
	type input struct {
		Text string `json:"text"`
	}
	type output struct {
		Words int `json:"words"`
	}
	s := mcp.New(mcp.Options{Version: "1.0.0"})
	err := mcp.Add(s, mcp.Tool[input, output]{
		Name:        "count_words",
		Description: "Counts the words of a text.",
		Do: func(_ context.Context, in input) (output, error) {
			return output{Words: len(strings.Fields(in.Text))}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(s.Handler())
	defer server.Close()

	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count_words","arguments":{"text":"one two"}}}`
	r, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(call))
	if err != nil {
		log.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := server.Client().Do(r)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(string(answer), `"structuredContent":{"words":2}`))
	// Output:
	// true
}
