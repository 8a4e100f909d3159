// Package killtest starts the program of a test again, as a process that the test kills. Test files only may import
// it.
package killtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// variable is the environment variable with the work of a process.
const variable = "REPUTE_TEST_CHILD"

// limit is how long the work of a process may take.
const limit = time.Minute

// Main is the TestMain of a package. It runs the tests, or in a process that Command made it runs do with the work of
// that process. The process ends with code 1 and an error on standard error when do fails.
func Main[W any](m *testing.M, do func(ctx context.Context, work W) error) {
	text := os.Getenv(variable)
	if text == "" {
		os.Exit(m.Run())
	}
	if err := run([]byte(text), do); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run decodes the work of this process and does it.
func run[W any](text []byte, do func(ctx context.Context, work W) error) error {
	var work W
	if err := json.Unmarshal(text, &work); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return do(ctx, work)
}

// Command returns a process that does some work. It is not started yet.
func Command[W any](ctx context.Context, work W) (*exec.Cmd, error) {
	text, err := json.Marshal(work)
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, os.Args[0])
	child.Env = append(os.Environ(), variable+"="+string(text))
	return child, nil
}
