// Package cli has what the subcommands of repute share.
//
// A command is a function that takes a [Program] and returns a cobra.Command. The Program has the streams, which tests
// replace, and the flags of the configuration. It gives a command
//
//   - the database: [Program.OnStore] is the body of a command that does one thing with what is stored, and
//     [Program.WithStore] is the same within a body. Both open the configured database for the time of a call, and
//     leave its schema alone. [Program.WithAnyStore] creates and migrates it too. The process that serves opens its
//     own by [FindDatabase] and [AwaitStore], because that one lives as long as the process;
//   - the chains: [Program.OneChain] is the one that --chain must name, [Program.Chosen] the stored ones that it may
//     name;
//   - output: [Program.Show] prints a result as JSON where --json was given ([Program.JSONFlag]) and as text
//     otherwise, and [Table] is text in columns. Texts of strangers go through [Visible];
//   - files: [Program.ReadInput] and [Program.OpenInput] read one that the command line names, "-" being standard
//     input. [Program.WriteFile] replaces a file as a whole, and [WriteNew] never replaces one.
//
// What is wrong with the command line, a file or the configuration is repute.ErrInvalid, for which the program exits
// with 2. [ExitError] chooses another code. Commands may rely on the configuration being checked before anything is
// opened, and on nothing being printed to standard output but their result.
package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/pflag"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/resolver"
)

// Program is what every subcommand shares. A process runs one command with it.
type Program struct {
	// Flags are bound by each command, and read with Load within its run.
	Flags    config.Flags
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Terminal bool // a person sits at stdin and stderr
	JSON     bool // --json was given: results are JSON
}

// IsTerminal reports whether a person watches w or types into it. Anything but a file, such as the buffer of a test, is
// none.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Confirm asks the person at the terminal to type yes. repute.ErrInvalid without a terminal, where --yes must be given,
// and after another answer. The question goes to standard error, so that it is seen when the output is redirected.
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

// Resolver returns a client that reads untrusted documents as the index would, through the same guard. The caller MUST
// close it.
func (p *Program) Resolver() (*resolver.Client, error) {
	c, err := p.Flags.Load()
	if err != nil {
		return nil, err
	}
	return c.Resolver(nil)
}

// JSONFlag adds the flag --json, which Show obeys.
func (p *Program) JSONFlag(set *pflag.FlagSet, usage string) {
	set.BoolVar(&p.JSON, "json", false, usage)
}

// Show prints a result to standard output: as indented JSON where --json was given, and by text otherwise.
func (p *Program) Show(v any, text func(io.Writer) error) error {
	if p.JSON {
		return p.PrintJSON(v)
	}
	return text(p.Stdout)
}

// PrintJSON writes one value to standard output, indented.
func (p *Program) PrintJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// PrintLine writes one value to standard output as one line of JSON. Commands that print while they work use it, so
// that a reader can parse each line as it comes.
func (p *Program) PrintLine(v any) error { return json.NewEncoder(p.Stdout).Encode(v) }

// Exit codes of commands that check something.
const (
	CodeFailed    = 1 // what is stored differs from the chain, or a file has errors
	CodeUnchecked = 2 // nothing differs, and something could not be compared, or a file could not be read
)

// Unread is the JSON output of a check of a file that could not be read. It is distinguished from a report by its
// member error.
type Unread struct {
	Source string `json:"source"`
	Error  string `json:"error"`
}

// Unreadable returns the error of a check whose file could not be read, whatever the reason, and prints it as JSON as
// well where --json was given. A check that was interrupted says nothing of the file.
func (p *Program) Unreadable(source string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	text := Visible(err.Error())
	if p.JSON {
		if err := p.PrintJSON(Unread{Source: source, Error: text}); err != nil {
			return err
		}
	}
	return ExitError{Code: CodeUnchecked, Text: text}
}

// ExitError is an error with an exit code of its own.
type ExitError struct {
	// Code is what the process exits with. Text is printed to standard error.
	Code int
	Text string
}

// Error returns the text without the code.
func (o ExitError) Error() string { return o.Text }
