// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {LinkedRegistry} from "./LinkedRegistry.sol";

/// @title ERC-8004 Reputation Registry: what clients say about agents, and what is answered.
contract ReputationRegistry is LinkedRegistry {
    struct Feedback {
        int128 value;
        uint8 valueDecimals;
        bool isRevoked;
        string tag1;
        string tag2;
    }

    /// @custom:storage-location erc7201:erc8004.reputation.registry.2
    struct ReputationStorage {
        mapping(uint256 agentId => mapping(address client => uint64)) _lastIndex;
        mapping(uint256 agentId => mapping(address client => mapping(uint64 index => Feedback))) _feedback;
        mapping(uint256 agentId => mapping(address client => mapping(uint64 index => Responses))) _responses;
        mapping(uint256 agentId => address[]) _clients;
    }

    struct Responses {
        address[] responders;
        mapping(address responder => uint64) count;
    }

    /// @dev Which feedback readAllFeedback returns.
    struct Filter {
        bytes32 tag1;
        bytes32 tag2;
        bool includeRevoked;
    }

    event NewFeedback(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        int128 value,
        uint8 valueDecimals,
        string indexed indexedTag1,
        string tag1,
        string tag2,
        string endpoint,
        string feedbackURI,
        bytes32 feedbackHash
    );
    event FeedbackRevoked(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 indexed feedbackIndex
    );
    event ResponseAppended(
        uint256 indexed agentId,
        address indexed clientAddress,
        uint64 feedbackIndex,
        address indexed responder,
        string responseURI,
        bytes32 responseHash
    );

    /// @dev keccak256(abi.encode(uint256(keccak256("erc8004.reputation.registry.2")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant STORAGE_SLOT = 0xa03d7693f2b3746b2d03f163c788147b71aa82854399a21fdf4de143ba778300;

    uint8 private constant MAX_DECIMALS = 18;
    int128 private constant MAX_ABS_VALUE = 1e38;
    bytes32 private constant EMPTY_HASH = keccak256("");

    /// @notice Records feedback by the caller. The endpoint, URI and hash exist only in the log.
    function giveFeedback(
        uint256 agentId,
        int128 value,
        uint8 valueDecimals,
        string calldata tag1,
        string calldata tag2,
        string calldata endpoint,
        string calldata feedbackURI,
        bytes32 feedbackHash
    ) external {
        require(valueDecimals <= MAX_DECIMALS, "too many decimals");
        require(value >= -MAX_ABS_VALUE && value <= MAX_ABS_VALUE, "value too large");
        require(!_controls(msg.sender, agentId), "Self-feedback not allowed");
        uint64 index = _nextIndex(agentId, msg.sender);
        _store()._feedback[agentId][msg.sender][index] = Feedback(value, valueDecimals, false, tag1, tag2);
        emit NewFeedback(
            agentId,
            msg.sender,
            index,
            value,
            valueDecimals,
            tag1,
            tag1,
            tag2,
            endpoint,
            feedbackURI,
            feedbackHash
        );
    }

    /// @notice Withdraws the caller's own feedback, for good.
    function revokeFeedback(uint256 agentId, uint64 feedbackIndex) external {
        Feedback storage f = _at(agentId, msg.sender, feedbackIndex);
        require(!f.isRevoked, "Already revoked");
        f.isRevoked = true;
        emit FeedbackRevoked(agentId, msg.sender, feedbackIndex);
    }

    /// @notice Answers feedback. Anyone may, any number of times, also when it was revoked.
    function appendResponse(
        uint256 agentId,
        address clientAddress,
        uint64 feedbackIndex,
        string calldata responseURI,
        bytes32 responseHash
    ) external {
        require(feedbackIndex > 0, "index must be > 0");
        require(bytes(responseURI).length > 0, "Empty URI");
        _at(agentId, clientAddress, feedbackIndex);
        Responses storage r = _store()._responses[agentId][clientAddress][feedbackIndex];
        if (r.count[msg.sender]++ == 0) {
            r.responders.push(msg.sender);
        }
        emit ResponseAppended(agentId, clientAddress, feedbackIndex, msg.sender, responseURI, responseHash);
    }

    /// @notice Mean of the live feedback of the listed clients, in the most frequent number of decimals.
    /// @dev A client listed twice counts twice. Both divisions truncate toward zero and the last conversion keeps the
    ///      low 128 bits unchecked, so extreme values wrap.
    function getSummary(
        uint256 agentId,
        address[] calldata clientAddresses,
        string calldata tag1,
        string calldata tag2
    ) external view returns (uint64 count, int128 summaryValue, uint8 summaryValueDecimals) {
        require(clientAddresses.length > 0, "clientAddresses required");
        Filter memory filter = Filter(_hash(tag1), _hash(tag2), false);
        uint64[MAX_DECIMALS + 1] memory used;
        int256 sum;
        for (uint256 i = 0; i < clientAddresses.length; i++) {
            uint64 last = _store()._lastIndex[agentId][clientAddresses[i]];
            for (uint64 j = 1; j <= last; j++) {
                Feedback storage f = _store()._feedback[agentId][clientAddresses[i]][j];
                if (!_passes(f, filter)) continue;
                sum += int256(f.value) * _scale(f.valueDecimals);
                used[f.valueDecimals]++;
                count++;
            }
        }
        if (count == 0) return (0, 0, 0);
        summaryValueDecimals = _mode(used);
        summaryValue = int128(sum / int256(uint256(count)) / _scale(summaryValueDecimals));
    }

    /// @notice One feedback, revoked or not.
    function readFeedback(
        uint256 agentId,
        address clientAddress,
        uint64 feedbackIndex
    )
        external
        view
        returns (int128 value, uint8 valueDecimals, string memory tag1, string memory tag2, bool isRevoked)
    {
        Feedback storage f = _at(agentId, clientAddress, feedbackIndex);
        return (f.value, f.valueDecimals, f.tag1, f.tag2, f.isRevoked);
    }

    /// @notice Feedback of the listed clients, or of all when none is listed, as parallel arrays.
    function readAllFeedback(
        uint256 agentId,
        address[] calldata clientAddresses,
        string calldata tag1,
        string calldata tag2,
        bool includeRevoked
    )
        external
        view
        returns (
            address[] memory clients,
            uint64[] memory feedbackIndexes,
            int128[] memory values,
            uint8[] memory valueDecimals,
            string[] memory tag1s,
            string[] memory tag2s,
            bool[] memory revokedStatuses
        )
    {
        clients = clientAddresses;
        if (clients.length == 0) clients = _store()._clients[agentId];
        Filter memory filter = Filter(_hash(tag1), _hash(tag2), includeRevoked);
        (clients, feedbackIndexes) = _matches(agentId, clients, filter);
        values = new int128[](clients.length);
        valueDecimals = new uint8[](clients.length);
        tag1s = new string[](clients.length);
        tag2s = new string[](clients.length);
        revokedStatuses = new bool[](clients.length);
        for (uint256 i = 0; i < clients.length; i++) {
            Feedback storage f = _store()._feedback[agentId][clients[i]][feedbackIndexes[i]];
            values[i] = f.value;
            valueDecimals[i] = f.valueDecimals;
            tag1s[i] = f.tag1;
            tag2s[i] = f.tag2;
            revokedStatuses[i] = f.isRevoked;
        }
    }

    /// @notice Number of responses: of all clients for client 0, of all the client's feedback for index 0, of all
    ///         responders when none is listed. A responder listed twice counts twice.
    function getResponseCount(
        uint256 agentId,
        address clientAddress,
        uint64 feedbackIndex,
        address[] calldata responders
    ) external view returns (uint64 count) {
        if (clientAddress != address(0) && feedbackIndex != 0) {
            return _countAt(agentId, clientAddress, feedbackIndex, responders);
        }
        if (clientAddress != address(0)) {
            return _countOf(agentId, clientAddress, responders);
        }
        address[] storage clients = _store()._clients[agentId];
        for (uint256 i = 0; i < clients.length; i++) {
            count += _countOf(agentId, clients[i], responders);
        }
    }

    /// @notice Everyone who ever rated the agent, in order of their first feedback.
    function getClients(uint256 agentId) external view returns (address[] memory) {
        return _store()._clients[agentId];
    }

    /// @notice Index of the client's newest feedback, 0 when there is none.
    function getLastIndex(uint256 agentId, address clientAddress) external view returns (uint64) {
        return _store()._lastIndex[agentId][clientAddress];
    }

    function _nextIndex(uint256 agentId, address client) private returns (uint64 index) {
        ReputationStorage storage $ = _store();
        index = ++$._lastIndex[agentId][client];
        if (index == 1) {
            $._clients[agentId].push(client);
        }
    }

    function _at(uint256 agentId, address client, uint64 index) private view returns (Feedback storage) {
        ReputationStorage storage $ = _store();
        require(index > 0, "index must be > 0");
        require(index <= $._lastIndex[agentId][client], "index out of bounds");
        return $._feedback[agentId][client][index];
    }

    /// @dev Two passes, because a memory array cannot grow: count, then fill.
    function _matches(
        uint256 agentId,
        address[] memory from,
        Filter memory filter
    ) private view returns (address[] memory clients, uint64[] memory indexes) {
        ReputationStorage storage $ = _store();
        uint256 n;
        for (uint256 pass = 0; pass < 2; pass++) {
            clients = new address[](n);
            indexes = new uint64[](n);
            n = 0;
            for (uint256 i = 0; i < from.length; i++) {
                uint64 last = $._lastIndex[agentId][from[i]];
                for (uint64 j = 1; j <= last; j++) {
                    if (!_passes($._feedback[agentId][from[i]][j], filter)) continue;
                    if (pass == 1) {
                        clients[n] = from[i];
                        indexes[n] = j;
                    }
                    n++;
                }
            }
        }
    }

    /// @dev An empty tag filters nothing, so feedback with an empty tag cannot be asked for.
    function _passes(Feedback storage f, Filter memory filter) private view returns (bool) {
        return
            (filter.includeRevoked || !f.isRevoked) &&
            (filter.tag1 == EMPTY_HASH || filter.tag1 == _hash(f.tag1)) &&
            (filter.tag2 == EMPTY_HASH || filter.tag2 == _hash(f.tag2));
    }

    function _countOf(
        uint256 agentId,
        address client,
        address[] calldata responders
    ) private view returns (uint64 count) {
        uint64 last = _store()._lastIndex[agentId][client];
        for (uint64 j = 1; j <= last; j++) {
            count += _countAt(agentId, client, j, responders);
        }
    }

    function _countAt(
        uint256 agentId,
        address client,
        uint64 index,
        address[] calldata responders
    ) private view returns (uint64 count) {
        Responses storage r = _store()._responses[agentId][client][index];
        address[] memory from = responders;
        if (from.length == 0) from = r.responders;
        for (uint256 i = 0; i < from.length; i++) {
            count += r.count[from[i]];
        }
    }

    /// @dev The most frequent number of decimals; the smallest of several.
    function _mode(uint64[MAX_DECIMALS + 1] memory used) private pure returns (uint8 mode) {
        for (uint8 d = 1; d <= MAX_DECIMALS; d++) {
            if (used[d] > used[mode]) mode = d;
        }
    }

    function _scale(uint8 decimals) private pure returns (int256) {
        return int256(10 ** uint256(MAX_DECIMALS - decimals));
    }

    function _hash(string memory s) private pure returns (bytes32) {
        return keccak256(bytes(s));
    }

    function _store() private pure returns (ReputationStorage storage $) {
        assembly {
            $.slot := STORAGE_SLOT
        }
    }
}
