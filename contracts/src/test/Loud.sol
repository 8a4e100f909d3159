// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

/// @title A target that answers with as many bytes as it is asked for.
contract Loud {
    function answer(uint256 size) external pure {
        assembly {
            return(0, size)
        }
    }

    function fail(uint256 size) external pure {
        assembly {
            revert(0, size)
        }
    }
}
