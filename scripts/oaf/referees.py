"""Judge the exports of OAF agents with the code that loads them: skills and Deep Agents.

Usage: referees.py skills DIR | deep-agents DIR. Prints what was loaded, one name a line; exits with 1 and
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


if __name__ == "__main__":
    judge = {"skills": skills, "deep-agents": deep_agents}[sys.argv[1]]
    for name in judge(Path(sys.argv[2]).resolve()):
        print(name)
