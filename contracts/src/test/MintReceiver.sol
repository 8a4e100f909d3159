// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {Address} from "@openzeppelin/contracts/utils/Address.sol";

/// @title A registrant that makes prepared calls to the registry inside the mint callback, before Registered is logged.
/// @dev The registry is the callback's sender. In each call the agent id, unknown beforehand, is written over the
///      32-byte argument at the given position.
contract MintReceiver is IERC721Receiver {
    struct Step {
        bytes data;
        /// Which argument is the agent id: 0 for the first.
        uint256 idArgument;
    }

    Step[] private _steps;

    /// @notice Calls the registry with `data`, making `steps` inside the callback of the mint it causes.
    function run(address registry, bytes calldata data, Step[] calldata steps) external returns (bytes memory) {
        delete _steps;
        for (uint256 i = 0; i < steps.length; i++) {
            _steps.push(steps[i]);
        }
        return Address.functionCall(registry, data);
    }

    function onERC721Received(address, address, uint256 agentId, bytes calldata) external returns (bytes4) {
        for (uint256 i = 0; i < _steps.length; i++) {
            bytes memory data = _steps[i].data;
            uint256 at = 36 + 32 * _steps[i].idArgument;
            require(data.length + 32 >= at + 32, "no such argument");
            assembly {
                mstore(add(data, at), agentId)
            }
            Address.functionCall(msg.sender, data);
        }
        return IERC721Receiver.onERC721Received.selector;
    }
}
