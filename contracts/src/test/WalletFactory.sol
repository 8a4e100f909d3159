// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ContractWallet} from "./ContractWallet.sol";

/// @title Deploys wallets at addresses that are known before (CREATE2), for signatures by ERC-6492.
contract WalletFactory {
    function walletOf(address signer) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(ContractWallet).creationCode, abi.encode(signer)));
        return address(uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), bytes32(0), code)))));
    }

    function deploy(address signer) external returns (address) {
        return address(new ContractWallet{salt: bytes32(0)}(signer));
    }
}
