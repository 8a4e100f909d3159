// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title A wallet that is a contract and lets one key sign for it (ERC-1271).
contract ContractWallet is IERC1271 {
    address private immutable _signer;

    constructor(address signer) {
        _signer = signer;
    }

    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4) {
        (address signer, ECDSA.RecoverError err, ) = ECDSA.tryRecover(hash, signature);
        bool ok = err == ECDSA.RecoverError.NoError && signer == _signer;
        return ok ? IERC1271.isValidSignature.selector : bytes4(0xffffffff);
    }
}
