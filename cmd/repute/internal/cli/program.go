// Package cli has what the subcommands of repute share: their streams and flags, the
// database that they work on, exit codes, and text that is safe on a terminal.
package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/resolver"
)

// Program is what every subcommand shares.
type Program struct {
	Flags    config.Flags
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool // a person sits at stdin and stderr
}

// IsTerminal reports whether a person watches w or types into it.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Confirm asks the person at the terminal to type yes. repute.ErrInvalid without a terminal,
// where --yes must be given, and after another answer.
func (p *Program) Confirm(what string) error {
	refused := repute.Invalid("yes", "not confirmed", "add --yes to do it without being asked")
	if !p.Terminal {
		return refused
	}
	fmt.Fprintf(p.Stderr, "%s Type yes to go on: ", what)
	answer, err := bufio.NewReader(p.Stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return refused
	}
	return nil
}

// Resolver returns a client that reads foreign documents as the index would, through the same guard. The caller MUST
// close it.
func (p *Program) Resolver() (*resolver.Client, error) {
	c, err := p.Flags.Load()
	if err != nil {
		return nil, err
	}
	return c.Resolver(nil)
}

// PrintJSON writes one value to standard output, indented.
func (p *Program) PrintJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Exit codes of commands that compare what is stored with the chain.
const (
	CodeDiffers   = 1 // something differs
	CodeUnchecked = 2 // nothing differs, and something could not be compared
)

// ExitError is an error with an exit code of its own.
type ExitError struct {
	Code int
	Text string
}

// Error returns the text without the code.
func (o ExitError) Error() string { return o.Text }
