#!/usr/bin/env python3
"""Check the Markdown files under version control: every relative link names a file that exists, every anchor names a
heading of its file, and prose has at most 120 columns. Tables, code blocks, single code spans and generated pages may
be wider."""
import re
import subprocess
import sys
from pathlib import Path

MAX_COLUMNS = 120
GENERATED = {Path("docs/reference/schema.md")}
# A row of a table, or a code span alone on its line.
UNBREAKABLE = re.compile(r"\s*(\||`[^`]*`$)")
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
# Documentation files that strings, comments and scripts name from the top of the repository.
NAMED = re.compile(r"(?<![\w/])(?:\.\./)*(docs/(?:tutorials|how-to|reference|explanation)/[\w.-]+\.(?:md|json))")


def outside_code(text):
    """Yield (line number, line) of the lines that are not in a fenced code block."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark.group(1).startswith(fence)):
            fence = None if fence else mark.group(1)
        elif fence is None:
            yield number, line


def anchors(path):
    """Return the anchors of a file's headings as GitHub derives them."""
    seen = {}
    found = set()
    for _, line in outside_code(path.read_text()):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(slug if count == 0 else f"{slug}-{count}")
    return found


def check_link(source, target):
    """Return what is wrong with a link, or None."""
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    path = (source.parent / name) if name else source
    if not path.exists():
        return f"{target}: no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"{target}: {path.name} has no such heading"
    return None


def check_page(path):
    """Yield the problems of one Markdown file."""
    for number, line in outside_code(path.read_text()):
        for target in LINK.findall(re.sub(r"`[^`]*`", "``", line)):
            problem = check_link(path, target)
            if problem:
                yield f"{path}:{number}: {problem}"
        if len(line) > MAX_COLUMNS and path not in GENERATED and not UNBREAKABLE.match(line):
            yield f"{path}:{number}: {len(line)} columns, more than {MAX_COLUMNS}"


def check_names(path):
    """Yield the documentation files that a source file names and that do not exist."""
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        return
    for name in NAMED.findall(text):
        if not Path(name).exists():
            yield f"{path}: names {name}, which does not exist"


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns],
                         check=True, capture_output=True, text=True)
    return [Path(name) for name in out.stdout.splitlines() if Path(name).is_file()]


def main():
    pages = tracked("*.md")
    problems = [p for page in pages for p in check_page(page)]
    problems += [p for path in tracked("*.go", "*.py", "*.sh", "*.yaml", "*.ts") for p in check_names(path)]
    for problem in problems:
        print(problem)
    print(f"{len(pages)} Markdown files checked, {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
