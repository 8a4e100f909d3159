package web

import "time"

// Shapes of answers that several documents ask for. Fields are those of schema.graphql; a pointer may be null.

// asOf is how fresh an answer of one chain is.
type asOf struct {
	ChainID      int64
	Block        int64
	Time         *time.Time
	Head         *int64
	LagSeconds   *int64
	LagBlocks    *int64
	Finality     string
	Completeness struct {
		Status, Reason string
		OpenGaps       int64
	}
}

// standing is what lists show of a score.
type standing struct {
	Score, Low, High float64
	Status           string
	Tier             int
}

// point is where on the chain something happened.
type point struct {
	Block  int64
	TxHash string
	Time   *time.Time
}

// timed is a point of which the time alone is shown.
type timed struct {
	Time  *time.Time
	Block int64
}

// total is how many there are, or at least are.
type total struct {
	Value    int64
	Relation string
}

// cursor is where a page of a list ends.
type cursor struct {
	HasNextPage bool
	EndCursor   *string
}

// listOf is a page of a list. AsOf is empty where the document does not ask for it.
type listOf[N any] struct {
	Nodes    []N
	PageInfo cursor
	AsOf     []asOf
}

// agentRow is an agent in a list.
type agentRow struct {
	ID, ShortID, Owner  string
	Name                *string
	Services            []struct{ Name string }
	X402Support, Active *bool
	standing
	Counts     struct{ Feedback, Clients int64 }
	Document   struct{ Status string }
	Registered struct{ Time *time.Time }
	Updated    timed
	Similar    *int64
	Manifest   *struct{ Domain, Price *string }
}

// agentHead is what every page of an agent shows of it.
type agentHead struct {
	ID, ShortID       string
	ChainID           int64
	Registry, TokenID string
	Owner             string
	Wallet, Name      *string
	Active            *bool
	standing
	Counts   struct{ Feedback, Clients, Revoked, Validations int64 }
	Document struct {
		Status       string
		ProblemCount int64
	}
	AsOf *asOf
}

// gate is a line that a policy may draw.
type gate struct {
	ID, Direction string
	Passed        bool
	Lacks         []struct {
		What, Must string
		Have, Need float64
	}
}

// problem is what is wrong with a document.
type problem struct{ Code, Severity, Path, Message string }
