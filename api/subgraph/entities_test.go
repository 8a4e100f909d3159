package subgraph_test

import (
	"slices"
	"strings"
	"testing"
)

// entities is the entity model of the agent0 subgraph: the fields of each type with their types.
var entities = map[string]string{
	"Agent": `id ID! chainId BigInt! agentId BigInt! agentURI String agentURIType String owner Bytes! agentWallet Bytes
		operators [Bytes!]! createdAt BigInt! updatedAt BigInt! registrationFile AgentRegistrationFile feedback [Feedback!]!
		validations [Validation!]! metadata [AgentMetadata!]! totalFeedback BigInt! lastActivity BigInt!`,
	"Feedback": `id ID! agent Agent! clientAddress Bytes! feedbackIndex BigInt! value BigDecimal! tag1 String tag2 String
		endpoint String feedbackURI String feedbackURIType String feedbackHash Bytes isRevoked Boolean! createdAt BigInt!
		revokedAt BigInt feedbackFile FeedbackFile responses [FeedbackResponse!]!`,
	"FeedbackResponse": `id ID! feedback Feedback! responder Bytes! responseUri String responseHash Bytes createdAt BigInt!`,
	"Validation": `id ID! agent Agent! validatorAddress Bytes! requestUri String requestHash Bytes! response Int
		responseUri String responseHash Bytes tag String status ValidationStatus! createdAt BigInt! updatedAt BigInt!`,
	"AgentMetadata": `id ID! agent Agent! key String! value Bytes! updatedAt BigInt!`,
	"Protocol": `id ID! chainId BigInt! name String! identityRegistry Bytes! reputationRegistry Bytes!
		validationRegistry Bytes! createdAt BigInt! updatedAt BigInt!`,
	"AgentRegistrationFile": `id ID! cid String! agentId String! name String description String image String active Boolean
		x402Support Boolean supportedTrusts [String!]! endpointsRawJson String mcpEndpoint String mcpVersion String
		a2aEndpoint String a2aVersion String webEndpoint String oasfEndpoint String oasfVersion String oasfSkills [String!]!
		oasfDomains [String!]! hasOASF Boolean! emailEndpoint String ens String did String mcpTools [String!]!
		mcpPrompts [String!]! mcpResources [String!]! a2aSkills [String!]! createdAt BigInt!`,
	"FeedbackFile": `id ID! cid String! feedbackId String! agentRegistry String agentId BigInt clientAddress String
		createdAtIso String valueRaw BigInt valueDecimals Int text String mcpTool String mcpPrompt String mcpResource String
		a2aSkills [String!]! a2aContextId String a2aTaskId String oasfSkills [String!]! oasfDomains [String!]!
		proofOfPaymentFromAddress String proofOfPaymentToAddress String proofOfPaymentChainId String
		proofOfPaymentTxHash String tag1 String tag2 String createdAt BigInt!`,
	"AgentRegistrationPoint": `id Int8! timestamp Timestamp! protocol Protocol! agent Agent!`,
	"FeedbackPoint": `id Int8! timestamp Timestamp! protocol Protocol! agent Agent! value BigDecimal! valueDelta BigDecimal!
		isRevocation Boolean! createdCount BigInt! revokedCount BigInt! valueForSum BigDecimal!`,
	"ValidationPoint": `id Int8! timestamp Timestamp! protocol Protocol! agent Agent! score Int! isRequest Boolean!
		isResponse Boolean! requestCount BigInt! responseCount BigInt! responseScore BigInt!`,
	"ProtocolAgentStats": `id Int8! timestamp Timestamp! protocol Protocol! agentRegistrations Int8!`,
	"ProtocolFeedbackStats": `id Int8! timestamp Timestamp! protocol Protocol! feedbackCreated BigInt! feedbackRevoked BigInt!
		valueSum BigDecimal! valueDeltaSum BigDecimal!`,
	"AgentFeedbackStats": `id Int8! timestamp Timestamp! protocol Protocol! agent Agent! feedbackCreated BigInt!
		feedbackRevoked BigInt! valueSum BigDecimal! valueDeltaSum BigDecimal!`,
	"ProtocolValidationStats": `id Int8! timestamp Timestamp! protocol Protocol! validationRequests BigInt!
		validationResponses BigInt! scoreSum BigInt!`,
	"AgentValidationStats": `id Int8! timestamp Timestamp! protocol Protocol! agent Agent! validationRequests BigInt!
		validationResponses BigInt! scoreSum BigInt!`,
}

// additions are the fields and types that this index has besides: those of earlier versions of the subgraph, and those
// that the Python SDK asks for.
var additions = map[string]string{
	"FeedbackResponse":      `responseURI String`,
	"AgentRegistrationFile": `agentWallet String agentWalletChainId BigInt x402support Boolean`,
	"Protocol": `totalAgents BigInt! totalFeedback BigInt! totalValidations BigInt! agents [Agent!]! tags [String!]!
		trustModels [String!]!`,
	"AgentStats": `id ID! agent Agent! totalFeedback BigInt! averageFeedbackValue BigDecimal! totalValidations BigInt!
		completedValidations BigInt! averageValidationScore BigDecimal! lastActivity BigInt! updatedAt BigInt!`,
	"GlobalStats": `id ID! totalAgents BigInt! totalFeedback BigInt! totalValidations BigInt! totalProtocols BigInt!
		agents [Agent!]! tags [String!]! updatedAt BigInt!`,
}

// TestEntities: every type has every field of the subgraph, of its type, and no other ones but the additions.
func TestEntities(t *testing.T) {
	t.Parallel()
	all := typesOf(t, serve(t, story(t).db))
	for name, one := range all {
		if one.Kind != "OBJECT" || strings.HasPrefix(name, "_") || name == "Query" {
			continue
		}
		want := pairs(entities[name] + " " + additions[name])
		var got []string
		for _, f := range one.Fields {
			got = append(got, f.Name+" "+f.Type.String())
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q\n%q", name, got, want)
		}
	}
	for _, table := range []map[string]string{entities, additions} {
		for name := range table {
			if all[name].Kind != "OBJECT" {
				t.Errorf("no type %s", name)
			}
		}
	}
}

// pairs returns each two words of a text together.
func pairs(text string) (out []string) {
	for pair := range slices.Chunk(strings.Fields(text), 2) {
		out = append(out, strings.Join(pair, " "))
	}
	return out
}
