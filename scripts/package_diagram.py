#!/usr/bin/env python3
"""Write the package diagram of docs/explanation/architecture.md from the imports of the packages.

An import that follows from other imports is left out, and so are packages of tests and tools."""
import json
import subprocess
from pathlib import Path

PAGE = Path("docs/explanation/architecture.md")
BEGIN, END = "<!-- packages: make generate writes this -->", "<!-- /packages -->"
# Packages that nearly every package imports, or that only commands and tests use.
LEFT_OUT = {"repute", "repute/migrations", "repute/web", "repute/devnet", "repute/contracts/bindings",
            "repute/contracts/artifacts"}


def imports():
    """Return the packages of this module with what each imports of it."""
    out = subprocess.run(["go", "list", "-json=ImportPath,Imports", "./..."], check=True, capture_output=True, text=True)
    decoder, text, graph = json.JSONDecoder(), out.stdout, {}
    while text.strip():
        package, end = decoder.raw_decode(text.lstrip())
        text = text.lstrip()[end:]
        graph[package["ImportPath"]] = set(package.get("Imports") or [])
    kept = {name for name in graph
            if name not in LEFT_OUT and not name.startswith(("repute/internal", "repute/contracts/internal"))
            and "/fixtures" not in name}
    return {name: graph[name] & kept for name in kept}


def reachable(graph, start):
    """Return the packages that start imports, also through others."""
    seen, todo = set(), list(graph[start])
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(graph[name])
    return seen


def diagram(graph):
    """Return the Mermaid text, whose arrows point from importer to imported."""
    far = {name: reachable(graph, name) for name in graph}
    lines = ["```mermaid", "graph TD"]
    for name in sorted(graph):
        short = name.removeprefix("repute/")
        lines.append(f'  {short.replace("/", "_")}["{short}"]')
    for name in sorted(graph):
        direct = {to for to in graph[name] if not any(to in far[other] for other in graph[name])}
        source = name.removeprefix("repute/").replace("/", "_")
        for to in sorted(direct):
            lines.append(f'  {source} --> {to.removeprefix("repute/").replace("/", "_")}')
    return "\n".join(lines + ["```"])


def main():
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{diagram(imports())}\n{END}{after}")


if __name__ == "__main__":
    main()
