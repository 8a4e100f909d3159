package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table is text in columns. Its rows are printed by Flush. Nothing is written before Flush, because the width of a
// column is known with its last row.
type Table struct {
	w    *tabwriter.Writer
	head string // printed before the first row; empty once it was
}

// NewTable returns a table with the titles of its columns, which are printed in any case.
func NewTable(w io.Writer, titles ...string) *Table {
	t := Section(w, strings.Join(titles, "\t"))
	t.title()
	return t
}

// Section returns a table that prints head, which may have several lines, only before a first row.
func Section(w io.Writer, head string) *Table {
	return &Table{w: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0), head: head}
}

// title prints the head unless it was.
func (t *Table) title() {
	if t.head != "" {
		fmt.Fprintln(t.w, t.head)
		t.head = ""
	}
}

// Row adds a row. Cells are printed as fmt.Sprint does.
func (t *Table) Row(cells ...any) {
	t.title()
	for i, cell := range cells {
		if i > 0 {
			fmt.Fprint(t.w, "\t")
		}
		fmt.Fprint(t.w, cell)
	}
	fmt.Fprintln(t.w)
}

// Flush prints the rows.
func (t *Table) Flush() error { return t.w.Flush() }
