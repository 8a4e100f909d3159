// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// @title Tells whether an account signed a digest: by its key, or as a contract does (ERC-1271).
library SignedFor {
    function signedFor(address account, bytes32 digest, bytes memory signature) internal view returns (bool) {
        if (account.code.length == 0) {
            (address signer, ECDSA.RecoverError err, ) = ECDSA.tryRecover(digest, signature);
            return err == ECDSA.RecoverError.NoError && signer == account;
        }
        (bool ok, bytes memory answer) = account.staticcall(
            abi.encodeCall(IERC1271.isValidSignature, (digest, signature))
        );
        return ok && answer.length == 32 && abi.decode(answer, (bytes32)) == bytes32(IERC1271.isValidSignature.selector);
    }
}
