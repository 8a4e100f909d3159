"""Judge the exports of OAF agents with the code that loads them: skills, Deep Agents and recipes.

Usage: referees.py skills DIR | deep-agents DIR | goose DIR. Prints what was loaded, one name a line; exits with 1 and
the reason otherwise."""
import sys
from pathlib import Path


def skills(root):
    """Validate every skill below a directory with the reference validator of agentskills.io."""
    from skills_ref import validate

    for file in sorted(root.rglob("SKILL.md")):
        problems = validate(file.parent)
        if problems:
            sys.exit(f"{file}: {problems}")
        yield file.parent.name


def deep_agents(root):
    """Load skills, instructions and sub-agents as Deep Agents does, and build the graph of the agent."""
    import yaml
    from deepagents import create_deep_agent
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.skills import _list_skills
    from langchain_core.language_models import FakeListChatModel

    (agent,) = [d for d in (root / ".deepagents").iterdir() if d.is_dir()]
    backend = FilesystemBackend(root_dir=str(root), virtual_mode=True)
    below = "/" + str(agent.relative_to(root))
    for skill in _list_skills(backend, below + "/skills"):
        yield "skill " + skill["name"]
    subagents = []
    for file in sorted(agent.glob("agents/*/AGENTS.md")):
        _, head, prompt = file.read_text().split("---\n", 2)
        fields = yaml.safe_load(head)
        subagents.append({"name": fields["name"], "description": fields["description"], "system_prompt": prompt,
                          "model": FakeListChatModel(responses=["x"])})
        yield "agent " + fields["name"]
    assert (agent / "AGENTS.md").read_bytes() == (agent / "agent.md").read_bytes()
    graph = create_deep_agent(model=FakeListChatModel(responses=["x"]), subagents=subagents, skills=[below + "/skills"],
                              memory=[below + "/AGENTS.md"], backend=backend, name=agent.name)
    yield "graph " + graph.name


def goose(root):
    """Render every recipe as Jinja with no variables, and check the members that Goose demands."""
    import jinja2
    import jinja2.meta
    import yaml

    for file in sorted(root.glob("recipes/*.yaml")):
        env = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        text = file.read_text()
        unknown = jinja2.meta.find_undeclared_variables(env.parse(text))
        recipe = yaml.safe_load(env.from_string(text).render())
        if unknown or not (recipe["title"] and recipe["description"] and recipe["instructions"]):
            sys.exit(f"{file}: undeclared variables {unknown}, or a required member is empty")
        for sub in recipe.get("sub_recipes", []):
            assert (file.parent / sub["path"]).is_file(), sub
        for extension in recipe.get("extensions", []):
            needs = {"builtin": "name", "stdio": "cmd", "streamable_http": "uri"}[extension["type"]]
            assert extension[needs] and extension["name"], extension
        yield file.stem


if __name__ == "__main__":
    judge = {"skills": skills, "deep-agents": deep_agents, "goose": goose}[sys.argv[1]]
    for name in judge(Path(sys.argv[2]).resolve()):
        print(name)
