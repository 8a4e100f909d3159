// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.24;

/// @title A registry, a registrar and a resolver of names in one, with the functions of the Ethereum Name Service.
/// Anybody sets any record.
contract NameService {
    event Transfer(address indexed from, address indexed to, uint256 indexed tokenId);

    mapping(bytes32 node => address) public resolver;
    mapping(bytes32 node => string) public name;
    mapping(bytes32 node => address) public addr;
    mapping(uint256 tokenId => uint256 time) public nameExpires;
    mapping(uint256 tokenId => address owner) private _owners;

    function setResolver(bytes32 node, address to) external {
        resolver[node] = to;
    }

    function setName(bytes32 node, string calldata text) external {
        name[node] = text;
    }

    function setAddr(bytes32 node, address to) external {
        addr[node] = to;
    }

    function give(address to, uint256 tokenId, uint256 expires) external {
        address from = _owners[tokenId];
        _owners[tokenId] = to;
        nameExpires[tokenId] = expires;
        emit Transfer(from, to, tokenId);
    }

    function ownerOf(uint256 tokenId) external view returns (address) {
        require(nameExpires[tokenId] > block.timestamp);
        return _owners[tokenId];
    }
}

/// @title A resolver that answers badly: it reverts, uses up all gas, or returns bytes of any number.
contract HostileResolver {
    enum Mode {
        Revert,
        Burn,
        Long,
        Garbage
    }

    Mode private _mode;

    function become(Mode mode) external {
        _mode = mode;
    }

    fallback() external {
        Mode mode = _mode;
        require(mode != Mode.Revert, "hostile");
        while (mode == Mode.Burn) {}
        uint256 size = mode == Mode.Long ? 10_000_000 : 7;
        assembly {
            mstore(0, 32)
            mstore(32, size)
            return(0, add(64, size))
        }
    }
}
