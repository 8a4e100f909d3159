// Package pgcopy encodes rows in the binary format of COPY, by which Postgres stores many rows fastest.
package pgcopy
