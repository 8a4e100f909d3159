package wire

import (
	"repute/trust"
	"repute/trust/identity"
)

// The wire types of OpenFi's trust snapshot.
type (
	// OpenFi is the trust snapshot of OpenFi: five yes-or-no checks of who an agent is.
	OpenFi struct {
		IdentityExists       bool    `json:"identityExists"`
		RegistrationResolves bool    `json:"registrationResolves"`
		AgentJSONResolves    bool    `json:"agentJsonResolves"`
		OperatorMatches      bool    `json:"operatorMatches"`
		ValidationStatus     string  `json:"validationStatus" enum:"disabled,passed,failed" doc:"disabled: the chain has no allow-listed validation contract"`
		Overall              float64 `json:"overallTrustScore" doc:"0 to 1, with nothing for a validation that is disabled"`
		OverallGranted       float64 `json:"overallTrustScoreValidationGranted" doc:"the same with the whole part for a validation that is disabled, as OpenFi gives it"`
		// Lacks has one for each part that did not pass.
		Lacks      []OpenFiLack `json:"lacks" doc:"for each part that did not pass, why"`
		Block      Long         `json:"block" doc:"what the chain's side is true at"`
		SnapshotAt *Time        `json:"snapshotAt" format:"date-time" doc:"the block's time"`
		Read       []ReadFile   `json:"read" doc:"the files that were used"`
	}
	// OpenFiLack is a part that did not pass.
	OpenFiLack struct {
		Part   string `json:"part"`
		Reason string `json:"reason"`
	}
	// ReadFile is a file by its bytes.
	ReadFile struct {
		SHA256        Hash  `json:"sha256"`
		ParserVersion int32 `json:"parserVersion" doc:"0: nothing but the members named here"`
	}
)

// OverallTrustScore names Overall in GraphQL.
func (o *OpenFi) OverallTrustScore() float64 { return o.Overall }

// OverallTrustScoreValidationGranted names OverallGranted in GraphQL.
func (o *OpenFi) OverallTrustScoreValidationGranted() float64 { return o.OverallGranted }

// EncodeOpenFi writes OpenFi's summary of trust in an agent.
func EncodeOpenFi(s identity.OpenFiSnapshot) *OpenFi {
	return &OpenFi{
		IdentityExists: s.IdentityExists, RegistrationResolves: s.RegistrationResolves,
		AgentJSONResolves: s.AgentJSONResolves,
		OperatorMatches:   s.OperatorMatches, ValidationStatus: string(s.ValidationStatus),
		Overall: DecimalOf(s.Overall), OverallGranted: DecimalOf(s.OverallGranted),
		Lacks: Each(s.Lacks, func(l identity.OpenFiLack) OpenFiLack { return OpenFiLack(l) }),
		Block: Long(s.Block), SnapshotAt: EncodeTime(s.SnapshotAt),
		Read: Each(s.Read, func(r trust.ReadDocument) ReadFile {
			return ReadFile{Hash(r.SHA256.Hex()),
				int32(r.ParserVersion)}
		}),
	}
}
