// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {SignedFor} from "./SignedFor.sol";

/// @title What x402 uses of Permit2: transfers by signature with a witness, and unordered nonces.
/// @notice It has no immutable values, so that its runtime code can be put at the well-known address.
contract Permit2 {
    using SafeERC20 for IERC20;

    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    error InvalidSigner();
    error InvalidNonce();
    error InvalidAmount(uint256 maxAmount);
    error SignatureExpired(uint256 signatureDeadline);

    bytes32 private constant _PERMISSIONS_TYPEHASH = keccak256("TokenPermissions(address token,uint256 amount)");
    string private constant _PERMIT_TYPE =
        "PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,";

    mapping(address owner => mapping(uint256 word => uint256)) public nonceBitmap;

    // solhint-disable-next-line func-name-mixedcase
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    keccak256("EIP712Domain(string name,uint256 chainId,address verifyingContract)"),
                    keccak256("Permit2"),
                    block.chainid,
                    address(this)
                )
            );
    }

    function permitWitnessTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata witnessType,
        bytes calldata signature
    ) external {
        if (block.timestamp > permit.deadline) revert SignatureExpired(permit.deadline);
        if (details.requestedAmount > permit.permitted.amount) revert InvalidAmount(permit.permitted.amount);
        uint256 bit = 1 << (permit.nonce & 0xff);
        uint256 flipped = nonceBitmap[owner][permit.nonce >> 8] ^= bit;
        if (flipped & bit == 0) revert InvalidNonce();
        bytes32 permitted = keccak256(
            abi.encode(_PERMISSIONS_TYPEHASH, permit.permitted.token, permit.permitted.amount)
        );
        bytes32 typehash = keccak256(abi.encodePacked(_PERMIT_TYPE, witnessType));
        bytes32 struct_ = keccak256(
            abi.encode(typehash, permitted, msg.sender, permit.nonce, permit.deadline, witness)
        );
        bytes32 digest = keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), struct_));
        if (!SignedFor.signedFor(owner, digest, signature)) revert InvalidSigner();
        IERC20(permit.permitted.token).safeTransferFrom(owner, details.to, details.requestedAmount);
    }
}

/// @title What the x402 payment proxies do: they let Permit2 pay the receiver that the payer signed.
contract ExactPermit2Proxy {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct Witness {
        address to;
        uint256 validAfter;
    }

    Permit2 private constant _PERMIT2 = Permit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    event Settled();

    error PaymentTooEarly();

    function settle(
        PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        if (block.timestamp < witness.validAfter) revert PaymentTooEarly();
        _PERMIT2.permitWitnessTransferFrom(
            Permit2.PermitTransferFrom(
                Permit2.TokenPermissions(permit.permitted.token, permit.permitted.amount),
                permit.nonce,
                permit.deadline
            ),
            Permit2.SignatureTransferDetails(witness.to, permit.permitted.amount),
            owner,
            keccak256(abi.encode(keccak256("Witness(address to,uint256 validAfter)"), witness)),
            "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)",
            signature
        );
        emit Settled();
    }
}

/// @title The proxy of the scheme upto: the named facilitator chooses the amount, up to the signed one.
contract UptoPermit2Proxy {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct Witness {
        address to;
        address facilitator;
        uint256 validAfter;
    }

    Permit2 private constant _PERMIT2 = Permit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    event Settled();

    error PaymentTooEarly();
    error UnauthorizedFacilitator();
    error AmountExceedsPermitted();

    function settle(
        PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        if (amount > permit.permitted.amount) revert AmountExceedsPermitted();
        if (block.timestamp < witness.validAfter) revert PaymentTooEarly();
        if (msg.sender != witness.facilitator) revert UnauthorizedFacilitator();
        _PERMIT2.permitWitnessTransferFrom(
            Permit2.PermitTransferFrom(
                Permit2.TokenPermissions(permit.permitted.token, permit.permitted.amount),
                permit.nonce,
                permit.deadline
            ),
            Permit2.SignatureTransferDetails(witness.to, amount),
            owner,
            keccak256(
                abi.encode(keccak256("Witness(address to,address facilitator,uint256 validAfter)"), witness)
            ),
            "Witness witness)TokenPermissions(address token,uint256 amount)"
            "Witness(address to,address facilitator,uint256 validAfter)",
            signature
        );
        emit Settled();
    }
}
