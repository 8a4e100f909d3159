// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {Create2} from "@openzeppelin/contracts/utils/Create2.sol";
import {OpenFiTreasury} from "./OpenFiTreasury.sol";

/// @title Makes treasuries at addresses known beforehand.
contract OpenFiTreasuryFactory {
    /// @notice Whether this factory made the contract.
    mapping(address treasury => bool) public isTreasury;

    event TreasuryCreated(address indexed treasury, address indexed owner, address indexed creator, bytes32 salt);

    /// @notice Makes a treasury for an owner. Each creator has its own salts.
    function createTreasury(address owner, bytes32 salt) external returns (address treasury) {
        treasury = address(new OpenFiTreasury{salt: _salt(msg.sender, salt)}(owner));
        isTreasury[treasury] = true;
        emit TreasuryCreated(treasury, owner, msg.sender, salt);
    }

    /// @notice The address that createTreasury gives or gave.
    function treasuryAddress(address creator, address owner, bytes32 salt) external view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(OpenFiTreasury).creationCode, abi.encode(owner)));
        return Create2.computeAddress(_salt(creator, salt), code);
    }

    function _salt(address creator, bytes32 salt) private pure returns (bytes32) {
        return keccak256(abi.encode(creator, salt));
    }
}
