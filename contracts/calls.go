package contracts

import (
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/contracts/bindings"
)

// Sources of a function's text.
const (
	SourceListed = "allow-list" // given with the entry of the allow-list
	SourceKnown  = "known"      // of the functions that a CallDecoder knows
)

// Call is calldata as people read it. What cannot be decoded has no Arguments.
type Call struct {
	// Within is the path of the argument, in the call before it that has the call as bytes.
	Within    string     `json:"within,omitempty" doc:"path of the argument that holds this call, empty for the transaction's own"`
	Target    string     `json:"target,omitempty" doc:"contract that is called, empty where that is not known"`
	Selector  string     `json:"selector,omitempty" doc:"0x and eight hex digits, empty without data"`
	Function  string     `json:"function,omitempty" doc:"name and types of the function, where it is known"`
	Source    string     `json:"source,omitempty" enum:"allow-list,known" doc:"where the function is known from: the entry of the allow-list, or the functions built in"`
	Arguments []Argument `json:"arguments,omitempty"`
	Undecoded string     `json:"undecoded,omitempty" doc:"why there are no arguments"`
	Data      string     `json:"data,omitempty" doc:"the whole calldata, 0x and hex digits"`
	// Decoded is what Arguments lists; nil where there are none.
	Decoded *Arguments `json:"-"`
}

// CallDecoder knows the functions of tokens, registries and treasuries. It is safe for
// concurrent use.
type CallDecoder struct{ known map[[4]byte]*Function }

// tokenFunctions are those of ERC-20, ERC-721, ERC-777, ERC-1155, ERC-4626, their extensions and Permit2. An
// argument that one standard has as an amount and another as an id is named after both.
const tokenFunctions = `transfer(address to, uint256 amount)
transferFrom(address from, address to, uint256 amountOrTokenId)
approve(address spender, uint256 amountOrTokenId)
increaseAllowance(address spender, uint256 addedValue)
decreaseAllowance(address spender, uint256 subtractedValue)
increaseApproval(address spender, uint256 addedValue)
permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
permit(address holder, address spender, uint256 nonce, uint256 expiry, bool allowed, uint8 v, bytes32 r, bytes32 s)
transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)
transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)
receiveWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)
mint(address to, uint256 amount)
burn(uint256 amount)
burnFrom(address from, uint256 amount)
send(address to, uint256 amount, bytes data)
burn(uint256 amount, bytes data)
operatorSend(address sender, address recipient, uint256 amount, bytes data, bytes operatorData)
operatorBurn(address account, uint256 amount, bytes data, bytes operatorData)
authorizeOperator(address operator)
revokeOperator(address operator)
transferAndCall(address to, uint256 amount)
transferAndCall(address to, uint256 amount, bytes data)
approveAndCall(address spender, uint256 amount)
approveAndCall(address spender, uint256 amount, bytes data)
approve(address token, address spender, uint160 amount, uint48 expiration)
transferFrom(address from, address to, uint160 amount, address token)
transferFrom((address from, address to, uint160 amount, address token)[] transferDetails)
permit(address owner, ((address token, uint160 amount, uint48 expiration, uint48 nonce) details, address spender, uint256 sigDeadline) permitSingle, bytes signature)
permit(address owner, ((address token, uint160 amount, uint48 expiration, uint48 nonce)[] details, address spender, uint256 sigDeadline) permitBatch, bytes signature)
permitTransferFrom(((address token, uint256 amount) permitted, uint256 nonce, uint256 deadline) permit, (address to, uint256 requestedAmount) transferDetails, address owner, bytes signature)
permitTransferFrom(((address token, uint256 amount)[] permitted, uint256 nonce, uint256 deadline) permit, (address to, uint256 requestedAmount)[] transferDetails, address owner, bytes signature)
permitWitnessTransferFrom(((address token, uint256 amount) permitted, uint256 nonce, uint256 deadline) permit, (address to, uint256 requestedAmount) transferDetails, address owner, bytes32 witness, string witnessTypeString, bytes signature)
permitWitnessTransferFrom(((address token, uint256 amount)[] permitted, uint256 nonce, uint256 deadline) permit, (address to, uint256 requestedAmount)[] transferDetails, address owner, bytes32 witness, string witnessTypeString, bytes signature)
setApprovalForAll(address operator, bool approved)
safeTransferFrom(address from, address to, uint256 tokenId)
safeTransferFrom(address from, address to, uint256 tokenId, bytes data)
safeTransferFrom(address from, address to, uint256 id, uint256 amount, bytes data)
safeBatchTransferFrom(address from, address to, uint256[] ids, uint256[] amounts, bytes data)
deposit()
withdraw(uint256 amount)
deposit(uint256 assets, address receiver)
mint(uint256 shares, address receiver)
withdraw(uint256 assets, address receiver, address owner)
redeem(uint256 shares, address receiver, address owner)
multicall(bytes[] data)`

// NewCallDecoder reads the functions, which takes some milliseconds: keep it.
func NewCallDecoder() (*CallDecoder, error) {
	texts := strings.Split(tokenFunctions, "\n")
	for _, m := range []func() (*abi.ABI, error){bindings.IdentityRegistryMetaData.ParseABI,
		bindings.ReputationRegistryMetaData.ParseABI,
		bindings.ValidationRegistryMetaData.ParseABI, bindings.OpenFiTreasuryMetaData.ParseABI} {
		contract, err := m()
		if err != nil {
			return nil, fmt.Errorf("ABI of a contract: %w", err)
		}
		for _, method := range contract.Methods {
			if !method.IsConstant() {
				texts = append(texts, textOf(&method))
			}
		}
	}
	d := &CallDecoder{known: make(map[[4]byte]*Function, len(texts))}
	for _, text := range texts {
		f, err := ParseFunction(text)
		if err != nil {
			return nil, err
		}
		if d.known[f.Selector] == nil { // the neutral names of tokens stay
			d.known[f.Selector] = f
		}
	}
	return d, nil
}

// textOf is a method's text with all names.
func textOf(m *abi.Method) string {
	inputs := make([]string, len(m.Inputs))
	for i := range m.Inputs {
		inputs[i] = typeText(&m.Inputs[i].Type) + " " + m.Inputs[i].Name
	}
	return m.RawName + "(" + strings.Join(inputs, ", ") + ")"
}

// typeText is a type as ParseFunction reads it, with the names of the members of tuples.
func typeText(t *abi.Type) string {
	switch t.T {
	case abi.SliceTy:
		return typeText(t.Elem) + "[]"
	case abi.ArrayTy:
		return fmt.Sprintf("%s[%d]", typeText(t.Elem), t.Size)
	case abi.TupleTy:
		members := make([]string, len(t.TupleElems))
		for i, m := range t.TupleElems {
			members[i] = typeText(m) + " " + t.TupleRawNames[i]
		}
		return "(" + strings.Join(members, ", ") + ")"
	}
	return t.String()
}

// DecodeCall decodes calldata by the ABI of the contract that it is sent to. It accepts the
// standard encoding alone: what is shown to a person is then all that the contract receives.
func DecodeCall(of abi.ABI, data []byte) (Call, error) {
	m, err := of.MethodById(data)
	if err != nil {
		return Call{}, fmt.Errorf("calldata: %w", err)
	}
	f, err := ParseFunction(textOf(m))
	if err != nil {
		return Call{}, err
	}
	a, err := f.Decode(data)
	if err != nil {
		return Call{}, fmt.Errorf("calldata of %s: %w", f.Signature, err)
	}
	return Call{Selector: hexutil.Encode(data[:4]), Function: f.Signature, Source: SourceKnown, Arguments: a.List(),
		Data: hexutil.Encode(data), Decoded: a}, nil
}

// Values are the arguments by name as rules see them: see Arguments.Values. They are empty
// where nothing was decoded.
func (c *Call) Values() map[string]any {
	if c.Decoded == nil {
		return map[string]any{}
	}
	return c.Decoded.Values()
}

// Known is the built-in function that calldata calls; nil where there is none.
func (d *CallDecoder) Known(data []byte) *Function {
	if len(data) < 4 {
		return nil
	}
	return d.known[[4]byte(data)]
}

// maxInnerCalls bounds how many calls inside of a call are shown, with the outer one. The rest is still in its bytes.
const maxInnerCalls = 32

// Decode takes a call apart, and those that it carries as bytes. given is the function of the
// entry of the allow-list, nil where there is none. The first of the calls is the one that
// was given; it is there also where it cannot be decoded.
func (d *CallDecoder) Decode(target common.Address, data []byte, given *Function) []Call {
	out := []Call{d.one(data, given)}
	out[0].Target = target.Hex()
	for i := 0; i < len(out) && len(out) < maxInnerCalls; i++ {
		out = append(out, d.inside(&out[i])...)
	}
	return out[:min(len(out), maxInnerCalls)]
}

// one decodes a call without what it carries.
func (d *CallDecoder) one(data []byte, given *Function) Call {
	c := Call{Data: hexutil.Encode(data)}
	if len(data) == 0 {
		return Call{}
	}
	if len(data) < 4 {
		c.Undecoded = "the data is shorter than a selector"
		return c
	}
	c.Selector = hexutil.Encode(data[:4])
	f, source := d.known[[4]byte(data)], SourceKnown
	if f == nil && given != nil && given.Calls(data) { // no text renames what is known
		f, source = given, SourceListed
	}
	if f == nil {
		c.Undecoded = "the function is not known: give it with the entry of the allow-list"
		return c
	}
	c.Function, c.Source = f.Signature, source
	decoded, err := f.Decode(data)
	if err != nil {
		c.Undecoded = err.Error()
		return c
	}
	c.Decoded, c.Arguments = decoded, decoded.List()
	return c
}

// inside are the calls of known functions that a call carries as bytes.
func (d *CallDecoder) inside(c *Call) (out []Call) {
	for _, a := range c.Arguments {
		if a.Type != "bytes" {
			continue
		}
		data, err := hexutil.Decode(a.Value)
		if err != nil || len(data) < 4 || d.known[[4]byte(data)] == nil {
			continue
		}
		inner := d.one(data, nil)
		inner.Within = a.Path
		if c.Within != "" {
			inner.Within = c.Within + "/" + a.Path
		}
		inner.Target = c.targetOf(a.Path)
		out = append(out, inner)
	}
	return out
}

// targetOf is the contract that a treasury's executeCall calls with an argument.
func (c *Call) targetOf(path string) string {
	if c.Decoded != nil && c.Decoded.Function.Signature == executeCallSignature && path == "3" {
		return c.Arguments[1].Value
	}
	return ""
}

// executeCallSignature is the treasury's function that calls a target with data.
const executeCallSignature = "executeCall(bytes32,address,uint256,bytes,bytes32,bytes32,string)"
