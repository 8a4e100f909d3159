package source

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
)

// plan is a compiled Method. Its calls are made in order, each for the raters that passed all calls before it. It does
// not change after Parse.
type plan struct {
	steps []step
	// values are those of all steps, in order. The first ones are the rater's address and the node of its reverse
	// record.
	values []value
	// person, issued, expires and revoked are indices in values, -1 for none.
	person, issued, expires, revoked int // indices in values, -1 for none
	events                           []logEvent
}

// step is a compiled Call. Either contract is set, or at and among.
type step struct {
	contract  string // "" when at names the contract
	at        int    // index of the value with the contract's address
	among     []string
	call      function
	arguments []argument
	holds     []condition
	no        [][4]byte // selectors of the errors that mean that the rater has no credential
	gas       uint64
}

// label returns the contract of the step for error messages. With at, the contract is known only for one rater.
func (s *step) label() string {
	if s.contract != "" {
		return s.contract
	}
	return strings.Join(s.among, " or ")
}

// argument is the value at index place, or literal when place is negative.
type argument struct {
	place   int
	literal common.Hash
}

// condition is a compiled Condition. place is the index of its value in plan.values.
type condition struct {
	place   int
	atLeast *big.Int // nil: the condition is future or equals
	future  bool
	equals  []argument
}

// raterName is the name of the rater's address in arguments.
const raterName = "rater"

// maxSteps is the highest number of calls of one source for one rater. Each step takes requests of its own about all
// raters that are left.
const maxSteps = 8

// defaultGas is what a call takes that reads an attestation; minGas and maxGas bound what a declaration may state.
const (
	defaultGas = 20_000
	minGas     = 5_000
	maxGas     = 1_000_000
)

// newPlan compiles a method. The error is repute.ErrInvalid and names a field below field.
//
// An EAS source is turned into calls and events of the general form first, whose values then have the names that EAS
// gives them. Values are numbered in the order in which they become known: the rater, the node of its reverse record,
// the uid from logs where there are any, and the outputs of each call. An argument or a condition may only name what is
// known before it.
func newPlan(field string, m *Method) (*plan, error) {
	if m.Payments != nil {
		return newPaymentPlan(field, m)
	}
	if (m.EAS == nil) == (len(m.Calls)+len(m.Events) == 0) || m.EAS != nil && len(m.Events) > 0 {
		return nil, repute.Invalid(field, "needs either eas or calls, or events, or payments",
			"give one of them, events also beside calls")
	}
	method := *m
	if m.EAS != nil {
		if err := m.EAS.check(field + ".eas"); err != nil {
			return nil, err
		}
		if m.Issued != "" || m.Expires != "" || m.Revoked != "" {
			return nil, repute.Invalid(field, "has times beside eas", "leave them out: the attestation has its own")
		}
		method.Calls, method.Events = m.EAS.calls(), m.EAS.events()
		method.Issued, method.Expires, method.Revoked = "time", "expirationTime", "revocationTime"
		if m.Person == "" {
			method.Person = "uid"
		}
	}
	if len(method.Calls) > maxSteps {
		return nil, repute.Invalid(field+".calls", fmt.Sprintf("%d calls", len(method.Calls)),
			fmt.Sprintf("at most %d", maxSteps))
	}
	p := &plan{values: []value{{name: raterName, wordType: wordType{name: "address"}},
		{name: reverseName, wordType: wordType{name: "bytes32", size: wordSize}}}}
	if m.EAS != nil && m.EAS.Logs {
		p.values = append(p.values, value{name: latestName, wordType: wordType{name: "bytes32", size: wordSize}})
	}
	for i := range method.Calls {
		if err := p.add(fmt.Sprintf("%s.calls[%d]", field, i), &method.Calls[i]); err != nil {
			return nil, err
		}
	}
	if err := p.name(field, &method); err != nil {
		return nil, err
	}
	return p, p.listen(field, &method)
}

// latestName is the name of the value with the uid of an address's latest attestation.
const latestName = "latest"

// calls returns the calls of an EAS source. The conditions repeat what the indexer promises, because an indexer may be
// written by anybody: the attestation MUST have the uid that was asked for, be of the schema, about the rater, and by
// an attester.
func (e *EAS) calls() []Call {
	indexed := Call{Contract: "indexer", Function: "getAttestationUid(address,bytes32) returns (bytes32 latest)",
		Arguments: []string{raterName, e.Schema.ID.Hex()}, Holds: []Condition{{Value: latestName, NotZero: true}}}
	record := Call{Contract: "registry", Function: recordText, Arguments: []string{latestName},
		Holds: []Condition{{Value: "uid", Equals: []string{latestName}},
			{Value: "schema", Equals: []string{e.Schema.ID.Hex()}}, {Value: "recipient", Equals: []string{raterName}},
			{Value: "attester", Equals: e.attesters()}}}
	if e.Logs {
		return []Call{record}
	}
	return []Call{indexed, record}
}

// attesters returns the addresses of Attester in the form of Condition.Equals.
func (e *EAS) attesters() []string {
	out := make([]string, len(e.Attester))
	for i, a := range e.Attester {
		out[i] = a.Hex()
	}
	return out
}

// check requires an attester and a schema id that is the hash of text, resolver and revocable, as EAS computes it.
// Anybody may register a schema with the same text and another resolver, whose id differs.
func (e *EAS) check(field string) error {
	if len(e.Attester) == 0 || slices.Contains(e.Attester, common.Address{}) {
		return repute.Invalid(field+".attester", "is missing", "the address that attests, or a list")
	}
	revocable := []byte{0}
	if e.Schema.Revocable {
		revocable[0] = 1
	}
	id := crypto.Keccak256Hash([]byte(e.Schema.Text), e.Schema.Resolver[:], revocable)
	if id != e.Schema.ID {
		return repute.Invalid(field+".schema.id", "is not the hash of text, resolver and revocable, which is "+id.Hex(),
			"copy all four from the schema registry")
	}
	return nil
}

// add compiles a call and appends it to the steps. The outputs are declared before the conditions, which may name them,
// and after the arguments, which may not.
func (p *plan) add(field string, c *Call) error {
	f, err := parseFunction(c.Function)
	if err != nil {
		return repute.Invalid(field+".function", err.Error(), "types of one word, with a name for each returned value")
	}
	f.record = c.Function == recordText
	s := step{contract: c.Contract, among: c.Among, call: f, gas: cmp.Or(c.Gas, defaultGas)}
	if s.gas < minGas || s.gas > maxGas {
		return repute.Invalid(field+".gas", "is out of range", fmt.Sprintf("%d to %d", minGas, maxGas))
	}
	if err := p.target(field, c, &s); err != nil {
		return err
	}
	if len(c.Arguments) != len(f.inputs) {
		return repute.Invalid(field+".arguments", fmt.Sprintf("%d for %d parameters", len(c.Arguments), len(f.inputs)),
			"one for each parameter")
	}
	for i, text := range c.Arguments {
		a, err := p.argument(text, f.inputs[i].wordType)
		if err != nil {
			return repute.Invalid(fmt.Sprintf("%s.arguments[%d]", field, i), err.Error(),
				"rater, a returned value or a literal")
		}
		s.arguments = append(s.arguments, a)
	}
	if err := p.declare(field+".function", f.outputs); err != nil {
		return err
	}
	for i := range c.Holds {
		if err := p.condition(fmt.Sprintf("%s.holds[%d]", field, i), &c.Holds[i], &s); err != nil {
			return err
		}
	}
	for i, text := range c.No {
		e, err := parseFunction(text)
		if err != nil || e.outputs != nil {
			return repute.Invalid(fmt.Sprintf("%s.no[%d]", field, i), fmt.Sprintf("%.80q is no error", text),
				"its signature, e.g. AttestationNotFound()")
		}
		s.no = append(s.no, e.selector)
	}
	p.steps = append(p.steps, s)
	return nil
}

// target compiles the contract of a call. The word rater is no address to call: an address that rates is the rater's
// choice.
func (p *plan) target(field string, c *Call, s *step) error {
	if c.At == "" {
		if c.Contract == "" || len(c.Among) > 0 {
			return repute.Invalid(field+".contract", "is missing, or among is set without at",
				"contract, or at and among")
		}
		return nil
	}
	s.at = p.place(c.At)
	if s.at < 1 || p.values[s.at].wordType.name != "address" {
		return repute.Invalid(field+".at", fmt.Sprintf("%.40q is no address that a call before returned", c.At),
			"the name of a returned address")
	}
	if c.Contract != "" || len(c.Among) == 0 || slices.Contains(c.Among, "") {
		return repute.Invalid(field+".among", "is missing, or contract is set beside at",
			"the names of the contracts that may be called")
	}
	return nil
}

// declare appends the returned values of a call, which later calls and conditions may name.
func (p *plan) declare(field string, outputs []value) error {
	if len(outputs) == 0 {
		return repute.Invalid(field, "returns nothing", "name what it returns, e.g. returns (bool human)")
	}
	for _, o := range outputs {
		if o.name == "" || p.place(o.name) >= 0 {
			return repute.Invalid(field, fmt.Sprintf("the returned value %q has no name of its own", o.name),
				"a different name for each returned value")
		}
		p.values = append(p.values, o)
	}
	return nil
}

// place returns the index of the value with a name, -1 when there is none.
func (p *plan) place(name string) int {
	return slices.IndexFunc(p.values, func(v value) bool { return v.name == name })
}

// argument compiles an argument of a type. The rater's address may also be used, padded on the left, as bytes32 and as
// a number of 160 bits or more. A name of a value wins over a literal.
func (p *plan) argument(text string, t wordType) (argument, error) {
	if at := p.place(text); at >= 0 {
		have := p.values[at].wordType
		padded := at == 0 && (t.name == "bytes32" || t.number() && t.size >= 160)
		if have != t && !padded {
			return argument{}, fmt.Errorf("%s is %s and cannot be used as %s", text, have.name, t.name)
		}
		return argument{place: at}, nil
	}
	w, err := t.literal(text)
	return argument{place: -1, literal: w}, err
}

// condition compiles a condition and appends it to a step.
func (p *plan) condition(field string, c *Condition, s *step) error {
	out := condition{place: p.place(c.Value)}
	if out.place < 0 {
		return repute.Invalid(field+".value", fmt.Sprintf("%q is not returned by this call or one before", c.Value),
			"the name of a returned value")
	}
	t := p.values[out.place].wordType
	for _, text := range c.Equals {
		a, err := p.argument(text, t)
		if err != nil {
			return repute.Invalid(field+".equals", err.Error(), "a value of the same type")
		}
		out.equals = append(out.equals, a)
	}
	given := 0
	if c.NotZero {
		given, out.atLeast = given+1, big.NewInt(1)
	}
	if c.Future {
		if given, out.future = given+1, true; !t.number() || t.size < 64 {
			return repute.Invalid(field+".future", fmt.Sprintf("%s is no time", t.name),
				"a value of type uint64 or larger")
		}
	}
	if c.AtLeast != "" {
		n, err := t.literal(c.AtLeast)
		if given, out.atLeast = given+1, n.Big(); err != nil || !t.number() {
			return repute.Invalid(field+".atLeast",
				fmt.Sprintf("%.80q cannot be compared with a %s", c.AtLeast, t.name),
				"a decimal number, for a value of type uintN")
		}
	}
	if len(c.Equals) > 0 {
		given++
	}
	if given != 1 {
		return repute.Invalid(field, "asks for nothing, or for more than one thing",
			"one of notZero, atLeast, future and equals")
	}
	s.holds = append(s.holds, out)
	return nil
}

// name sets person, issued, expires and revoked to the indices of the values that the method names. A value that no
// member names gets the place -1, as place returns for the empty name.
func (p *plan) name(field string, m *Method) error {
	for _, c := range []struct {
		member, name string
		place        *int
		time         bool
	}{{"person", m.Person, &p.person, false}, {"issued", m.Issued, &p.issued, true},
		{"expires", m.Expires, &p.expires, true}, {"revoked", m.Revoked, &p.revoked, true}} {
		*c.place = p.place(c.name)
		switch {
		case c.name == "":
		case *c.place < 1:
			return repute.Invalid(field+"."+c.member, fmt.Sprintf("%q is not returned by any call", c.name),
				"the name of a returned value")
		case c.time && !p.values[*c.place].number():
			return repute.Invalid(field+"."+c.member, "is no number", "a value of type uintN, seconds of the Unix era")
		}
	}
	if m.KeepFirst && m.Person == "" {
		return repute.Invalid(field+".keepFirst", "is set without a person", "name the value in person")
	}
	return nil
}
