// Package clitest runs commands of repute in tests, with their flags and their errors, and without the exit code and
// the handling of wrong usage that only the program itself has. Test files only may import it.
package clitest

import (
	"bytes"
	"context"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"repute/cmd/repute/internal/cli"
)

// Output has what a command has printed so far. It may be read while the command runs. The zero value is empty.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(b)
}

// String returns all that was printed.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Run runs one of some commands with arguments, and with standard output and standard error in out.
func Run(ctx context.Context, out *Output, commands func(*cli.Program) []*cobra.Command, args ...string) error {
	p := &cli.Program{Stdin: strings.NewReader(""), Stdout: out, Stderr: out}
	root := &cobra.Command{Use: "repute", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { p.Flags.Set = cmd.Flags() }}
	root.AddCommand(commands(p)...)
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}
