// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {SignedFor} from "./SignedFor.sol";

/// @title A token with six decimals whose transfers an owner can authorize by signature, as USDC's are (EIP-3009).
/// @notice It can be told to misbehave: to refuse transfers, or to claim success without moving anything.
contract AuthorizedToken is ERC20 {
    bytes32 private constant _TRANSFER_TYPEHASH =
        keccak256(
            "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,"
            "bytes32 nonce)"
        );

    enum Behavior {
        Honest,
        Reverting,
        Idle
    }

    string private _version;
    Behavior private _behavior;
    mapping(address authorizer => mapping(bytes32 nonce => bool)) private _used;

    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    constructor(string memory name_, string memory version_) ERC20(name_, "AUT") {
        _version = version_;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function behave(Behavior behavior) external {
        _behavior = behavior;
    }

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    function version() external view returns (string memory) {
        return _version;
    }

    // solhint-disable-next-line func-name-mixedcase
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                    keccak256(bytes(name())),
                    keccak256(bytes(_version)),
                    block.chainid,
                    address(this)
                )
            );
    }

    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool) {
        return _used[authorizer][nonce];
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        _authorized(from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v));
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) external {
        _authorized(from, to, value, validAfter, validBefore, nonce, signature);
    }

    function _authorized(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        require(block.timestamp > validAfter, "authorization is not yet valid");
        require(block.timestamp < validBefore, "authorization is expired");
        require(!_used[from][nonce], "authorization is used or canceled");
        bytes32 struct_ = keccak256(
            abi.encode(_TRANSFER_TYPEHASH, from, to, value, validAfter, validBefore, nonce)
        );
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), struct_));
        require(SignedFor.signedFor(from, digest, signature), "invalid signature");
        require(_behavior != Behavior.Reverting, "transfers are refused");
        _used[from][nonce] = true;
        emit AuthorizationUsed(from, nonce);
        if (_behavior == Behavior.Idle) return;
        _transfer(from, to, value);
    }
}
