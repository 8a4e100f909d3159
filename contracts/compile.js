// Compiles src/ with the locked compiler and writes one artefact per contract: its ABI, its creation code and its
// runtime code. The same sources always give the same bytes.
"use strict";

const fs = require("fs");
const path = require("path");
const solc = require("solc");

const root = __dirname;

// Artefact name -> source file, by the folder the artefacts go to.
const targets = {
  artifacts: {
    IdentityRegistry: "src/IdentityRegistry.sol",
    ReputationRegistry: "src/ReputationRegistry.sol",
    ValidationRegistry: "src/ValidationRegistry.sol",
    MinimalUUPS: "src/MinimalUUPS.sol",
    OpenFiTreasury: "src/OpenFiTreasury.sol",
    OpenFiTreasuryFactory: "src/OpenFiTreasuryFactory.sol",
    ERC1967Proxy: "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol",
  },
  "artifacts/test": {
    Attestations: "src/test/Sources.sol",
    AuthorizedToken: "src/test/AuthorizedToken.sol",
    Book: "src/test/Sources.sol",
    BoundToken: "src/test/Sources.sol",
    ContractWallet: "src/test/ContractWallet.sol",
    ExactPermit2Proxy: "src/test/Permit2.sol",
    HostileResolver: "src/test/NameService.sol",
    LendingPool: "src/test/LendingPool.sol",
    Loud: "src/test/Loud.sol",
    MintReceiver: "src/test/MintReceiver.sol",
    Multicall: "src/test/Multicall.sol",
    NameService: "src/test/NameService.sol",
    Names: "src/test/Sources.sol",
    OpenProxy: "src/test/Sources.sol",
    Payee: "src/test/Payee.sol",
    Permit2: "src/test/Permit2.sol",
    PlainToken: "src/test/PlainToken.sol",
    TestToken: "src/test/TestToken.sol",
    TokenVault: "src/test/TokenVault.sol",
    UptoPermit2Proxy: "src/test/Permit2.sol",
    WalletFactory: "src/test/WalletFactory.sol",
    WideToken: "src/test/WideToken.sol",
  },
};

function read(file) {
  const base = file.startsWith("@") ? path.join(root, "node_modules") : root;
  return fs.readFileSync(path.join(base, file), "utf8");
}

function findImport(file) {
  try {
    return { contents: read(file) };
  } catch (err) {
    return { error: err.message };
  }
}

function compile() {
  const files = Object.values(targets).flatMap((t) => Object.values(t));
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(files.map((f) => [f, { content: read(f) }])),
    settings: {
      viaIR: true,
      evmVersion: "shanghai",
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
    },
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: findImport }));
  const problems = (output.errors || []).filter((e) => e.severity !== "info");
  if (problems.length > 0) {
    throw new Error(problems.map((e) => e.formattedMessage).join("\n"));
  }
  return output.contracts;
}

function write(contracts) {
  for (const [folder, names] of Object.entries(targets)) {
    fs.mkdirSync(path.join(root, folder), { recursive: true });
    for (const [name, file] of Object.entries(names)) {
      const { abi, evm } = contracts[file][name];
      const artifact = {
        contractName: name,
        abi,
        bytecode: "0x" + evm.bytecode.object,
        deployedBytecode: "0x" + evm.deployedBytecode.object,
      };
      fs.writeFileSync(path.join(root, folder, name + ".json"), JSON.stringify(artifact) + "\n");
    }
  }
}

write(compile());
