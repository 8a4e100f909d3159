"""Judge the exports of OAF agents with the code that loads them: skills and Deep Agents.

Usage: referees.py skills DIR | deep-agents DIR MODEL, where MODEL is the address of a server of Anthropic's Messages.
Prints what was loaded, one name a line, and the answer of the agent; exits with 1 and the reason otherwise."""
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


def deep_agents(root, address):
    """Load skills, instructions and sub-agents as Deep Agents does, and run the agent."""
    import yaml
    from deepagents import create_deep_agent
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.skills import _list_skills
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(model_name="scripted", base_url=address, api_key="none", timeout=60, stop=None)
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
                          "model": model})
        yield "agent " + fields["name"]
    assert (agent / "AGENTS.md").read_bytes() == (agent / "agent.md").read_bytes()
    graph = create_deep_agent(model=model, subagents=subagents, skills=[below + "/skills"],
                              memory=[below + "/AGENTS.md"], backend=backend, name=agent.name)
    out = graph.invoke({"messages": [{"role": "user", "content": "What is the answer?"}]})
    yield graph.name + " says " + out["messages"][-1].text


if __name__ == "__main__":
    judge = {"skills": skills, "deep-agents": deep_agents}[sys.argv[1]]
    for name in judge(Path(sys.argv[2]).resolve(), *sys.argv[3:]):
        print(name)
