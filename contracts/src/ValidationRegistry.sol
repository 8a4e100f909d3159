// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {LinkedRegistry} from "./LinkedRegistry.sol";

/// @title ERC-8004 Validation Registry: requests to check an agent's work, and the validators' answers.
contract ValidationRegistry is LinkedRegistry {
    /// @dev A request together with the newest answer. Earlier answers exist only in the logs.
    struct Validation {
        address validatorAddress;
        uint8 response;
        bool hasResponse;
        uint256 agentId;
        bytes32 responseHash;
        uint256 lastUpdate;
        string tag;
    }

    /// @custom:storage-location erc7201:erc8004.validation.registry
    struct ValidationStorage {
        mapping(bytes32 requestHash => Validation) _validations;
        mapping(uint256 agentId => bytes32[]) _ofAgent;
        mapping(address validator => bytes32[]) _ofValidator;
    }

    event ValidationRequest(
        address indexed validatorAddress,
        uint256 indexed agentId,
        string requestURI,
        bytes32 indexed requestHash
    );
    event ValidationResponse(
        address indexed validatorAddress,
        uint256 indexed agentId,
        bytes32 indexed requestHash,
        uint8 response,
        string responseURI,
        bytes32 responseHash,
        string tag
    );

    /// @dev keccak256(abi.encode(uint256(keccak256("erc8004.validation.registry")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_SLOT = 0x21543a2dd0df813994fbf82c69c61d1aafcdce183d68d2ef40068bdce1481100;

    /// @notice Asks a validator to check an agent's work. A request hash can be used once, by any agent.
    function validationRequest(
        address validatorAddress,
        uint256 agentId,
        string calldata requestURI,
        bytes32 requestHash
    ) external {
        ValidationStorage storage $ = _store();
        Validation storage v = $._validations[requestHash];
        require(validatorAddress != address(0), "bad validator");
        require(v.validatorAddress == address(0), "exists");
        require(_controls(msg.sender, agentId), "Not authorized");
        v.validatorAddress = validatorAddress;
        v.agentId = agentId;
        v.lastUpdate = block.timestamp;
        $._ofAgent[agentId].push(requestHash);
        $._ofValidator[validatorAddress].push(requestHash);
        emit ValidationRequest(validatorAddress, agentId, requestURI, requestHash);
    }

    /// @notice Answers a request with 0 to 100. Each further answer replaces the one before, tag included.
    function validationResponse(
        bytes32 requestHash,
        uint8 response,
        string calldata responseURI,
        bytes32 responseHash,
        string calldata tag
    ) external {
        Validation storage v = _known(requestHash);
        require(msg.sender == v.validatorAddress, "not validator");
        require(response <= 100, "resp>100");
        v.response = response;
        v.hasResponse = true;
        v.responseHash = responseHash;
        v.lastUpdate = block.timestamp;
        v.tag = tag;
        emit ValidationResponse(msg.sender, v.agentId, requestHash, response, responseURI, responseHash, tag);
    }

    /// @notice A request and its newest answer. A pending request and one answered 0 look alike.
    function getValidationStatus(
        bytes32 requestHash
    )
        external
        view
        returns (
            address validatorAddress,
            uint256 agentId,
            uint8 response,
            bytes32 responseHash,
            string memory tag,
            uint256 lastUpdate
        )
    {
        Validation storage v = _known(requestHash);
        return (v.validatorAddress, v.agentId, v.response, v.responseHash, v.tag, v.lastUpdate);
    }

    /// @notice Number and floor mean of the newest answers, of the listed validators (none: all) under a tag (empty:
    ///         any).
    function getSummary(
        uint256 agentId,
        address[] calldata validatorAddresses,
        string calldata tag
    ) external view returns (uint64 count, uint8 avgResponse) {
        bytes32[] storage hashes = _store()._ofAgent[agentId];
        uint256 total;
        for (uint256 i = 0; i < hashes.length; i++) {
            Validation storage v = _store()._validations[hashes[i]];
            if (!v.hasResponse || !_contains(validatorAddresses, v.validatorAddress)) continue;
            if (bytes(tag).length > 0 && keccak256(bytes(v.tag)) != keccak256(bytes(tag))) continue;
            total += v.response;
            count++;
        }
        if (count > 0) {
            avgResponse = uint8(total / count);
        }
    }

    /// @notice Request hashes of an agent, oldest first.
    function getAgentValidations(uint256 agentId) external view returns (bytes32[] memory) {
        return _store()._ofAgent[agentId];
    }

    /// @notice Request hashes addressed to a validator, oldest first.
    function getValidatorRequests(address validatorAddress) external view returns (bytes32[] memory) {
        return _store()._ofValidator[validatorAddress];
    }

    function _known(bytes32 requestHash) private view returns (Validation storage v) {
        v = _store()._validations[requestHash];
        require(v.validatorAddress != address(0), "unknown");
    }

    /// @dev An empty list contains everyone.
    function _contains(address[] calldata list, address account) private pure returns (bool) {
        for (uint256 i = 0; i < list.length; i++) {
            if (list[i] == account) return true;
        }
        return list.length == 0;
    }

    function _store() private pure returns (ValidationStorage storage $) {
        assembly {
            $.slot := STORAGE_SLOT
        }
    }
}
