#!/usr/bin/env python3
"""The score of repute, written again from docs/explanation/trust.md with floating point numbers.

It is no part of the product. A test compares it with the engine, so that the page says enough to compute a score,
and it may be read beside that page. What limits an agent by its relatives (the guard), tiers and gates are left out.

    python3 docs/explanation/trust.py < world.json

The world has params and tags (the two files of parameters), now (Unix seconds), roots with address and weight, and
agents with owner and rows; a row has rater, value, tag1, tag2, time, block, log, content, paid in dollars and
validation. It prints a list, in the order of the agents, of status, score, mean, low, high, evidence and two flows."""
import collections
import json
import math
import sys

DAY = 24 * 60 * 60


def median(values):
    """The middle value, the lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


class Reader:
    """Turns rows into opinions, by the two files of parameters."""

    def __init__(self, world):
        self.params, self.tags, self.now = world["params"], world["tags"], world["now"]
        self.use = {c["name"]: c["use"] for c in self.tags["channels"]}
        self.rules = {name: rule for rule in self.tags["tags"] for name in rule["tags"]}
        self.wrote = collections.defaultdict(list)
        for row in (row for agent in world["agents"] for row in agent["rows"]):
            if not row["validation"] and self.rule(row) and 0 < row["time"] <= self.now and float(row["value"]) > 0:
                self.wrote[row["rater"], row["tag1"]].append(float(row["value"]))

    def rule(self, row):
        """Channel, weight and curve of a row; None where it does not count."""
        if row["validation"]:
            v = self.tags["validation"]
            return v["channel"], v["weight"] * v["finality"].get(row["tag1"], v["finality"][""]), v["curve"]
        rule = self.rules.get(row["tag1"])
        if rule is None or self.use[rule["channel"]] != "score" or rule["weight"] == 0:
            return None
        return rule["channel"], rule["weight"], rule["curve"]

    def on_own_scale(self, row):
        """The value on the tag's own scale, None where nobody can tell on which one the rater wrote it."""
        x, wrote, rule = float(row["value"]), self.wrote[row["rater"], row["tag1"]], self.rules[row["tag1"]]
        scales, own = rule.get("scales", [0]), rule["curve"][-1][0]
        if not 0 < x <= scales[-1] or max(wrote) > scales[-1]:
            return x
        top = next(end for end in scales if max(wrote) <= end)
        fits = any(v % 1 for v in wrote) or len(scales) == 1 if top == 1 else max(wrote) == top
        return x * own / top if fits and len(wrote) >= 5 else None

    def opinion(self, row):
        """Channel, rule weight, opinion -1 to 1, decay and payment factor of a row; None where it does not count."""
        rule = self.rule(row)
        if rule is None or not 0 < row["time"] <= self.now:
            return None
        channel, weight, curve = rule
        x = float(row["value"]) if row["validation"] else self.on_own_scale(row)
        if x is None or not curve[0][0] <= x <= curve[-1][0]:
            return None
        value = curve[0][1]
        for (x0, y0), (x1, y1) in zip(curve, curve[1:]):
            if x <= x1:
                value = y0 + (x - x0) * (y1 - y0) / (x1 - x0)
                break
        e = self.params["evidence"]
        decay = 2 ** -((self.now - row["time"]) / (e["halfLifeDays"] * DAY))
        paid = 1.0
        if row["paid"] > 0:
            paid = min(e["maxPayment"],
                       1 + math.log2(1 + row["paid"]) * (e["maxPayment"] - 1) / math.log2(e["fullPayment"] + 1))
        return channel, weight, value, decay, paid


def merged(opinions):
    """One identity's opinion of several rows: its value, and the evidence that it gives at full weight."""
    decay = sum(o[3] for o in opinions)
    if decay == 0:
        return 0.0, 0.0
    value = sum(o[2] * o[3] for o in opinions) / decay
    weight = sum(o[1] * o[3] for o in opinions) / decay
    return value, weight * max(o[4] for o in opinions) * max(o[3] for o in opinions)


class Graph:
    """Who vouches for whom, and what flows from the roots: mass and weight of each address."""

    def __init__(self, world, reader):
        self.params = world["params"]["walk"]
        pairs = collections.defaultdict(list)
        for agent in world["agents"]:
            for row in agent["rows"]:
                opinion = reader.opinion(row)
                if opinion is not None and row["rater"] != agent["owner"]:
                    pairs[row["rater"], agent["owner"]].append(opinion)
        self.edges = {}
        for pair, opinions in pairs.items():
            value, strength = merged(opinions)
            if value > 0:
                self.edges[pair] = min(1, min(1, value / self.params["fullOpinion"]) * strength)
        self.given = collections.Counter()
        self.givers = collections.defaultdict(list)
        for (giver, to), weight in self.edges.items():
            self.given[giver] += weight
            self.givers[to].append(giver)
        self.roots = self.shares(world["roots"])
        self.mass = self.walk_mass()
        self.weight = self.walk_weight()

    def shares(self, roots):
        """The part of the restart of each root: in proportion to its weight, none above the most."""
        weights = {r["address"]: r["weight"] for r in roots}
        most = max(self.params["maxRootShare"], 1 / max(1, len(weights)))
        capped = {}
        while True:
            rest = 1 - most * len(capped)
            total = sum(w for a, w in weights.items() if a not in capped)
            shares = {a: capped.get(a, rest * w / total if total else 0) for a, w in weights.items()}
            heavy = [a for a in shares if a not in capped and shares[a] > most + 1e-9]
            if not heavy:
                return shares
            capped.update((a, most) for a in heavy)

    def pass_on(self, gives):
        """What each address receives when each gives what gives says, in proportion to its praise."""
        got = collections.Counter()
        for (giver, to), weight in self.edges.items():
            got[to] += gives(giver) * weight / self.given[giver]
        return got

    def walk_mass(self):
        """Rounds in which everybody passes on what he has, but for the restart; what is left starts at the roots."""
        mass = dict(self.roots)
        for _ in range(self.params["iterations"]):
            keep = 1 - self.params["restart"]
            got = self.pass_on(lambda a, mass=mass: keep * mass.get(a, 0))
            rest = 1 - sum(got.values())
            mass = collections.Counter(got)
            for root, share in self.roots.items():
                mass[root] += rest * share
        full = self.params["fullShare"] * median([mass[r] for r in self.roots])
        return {a: m / full for a, m in mass.items()}

    def walk_weight(self):
        """What everybody receives from those who have weight, at most 1. A root has its own."""
        middle = median(list(self.roots.values()))
        own = {a: min(1, share / middle) for a, share in self.roots.items()}
        got = {}

        def gives(a):
            if a in own:
                return min(self.params["rootGives"] * own[a], self.params["rootVouch"] * self.given[a])
            return min(self.params["passOn"] * got.get(a, 0), self.params["vouch"] * self.given[a])

        for _ in range(self.params["iterations"]):
            got = self.pass_on(gives)
        return {a: max(own.get(a, 0), min(1, got.get(a, 0))) for a in set(own) | set(got)}

    def flow(self, raters, subject, least):
        """The most that reaches the raters from the roots: a unit by each address, none by the subject."""
        capacity = collections.defaultdict(dict)

        def arc(a, b, c):
            capacity[a][b] = capacity[a].get(b, 0) + c
            capacity[b].setdefault(a, 0)

        addresses = set(self.roots) | {a for pair in self.edges for a in pair}
        for a in addresses - {subject}:
            arc(("in", a), ("out", a), 1)
        for giver, to in self.edges:
            if subject not in (giver, to):
                arc(("out", giver), ("in", to), 1e9)
        for root in set(self.roots) - {subject}:
            arc("source", ("in", root), 1e9)
        for rater in raters:
            if rater in addresses and rater != subject and self.weight.get(rater, 0) > least:
                arc(("out", rater), "sink", self.weight[rater])
        total = 0.0
        while True:
            came, queue = {"source": None}, collections.deque(["source"])
            while queue and "sink" not in came:
                at = queue.popleft()
                for to, free in capacity[at].items():
                    if free > 1e-12 and to not in came:
                        came[to] = at
                        queue.append(to)
            if "sink" not in came:
                return total
            way, at = [], "sink"
            while came[at] is not None:
                way.append((came[at], at))
                at = came[at]
            amount = min(capacity[a][b] for a, b in way)
            for a, b in way:
                capacity[a][b] -= amount
                capacity[b][a] += amount
            total += amount


def read_opinions(agent, reader, graph, least):
    """What is said of an agent: by burst and channel, lists of the opinions of each rater."""
    rows = sorted(agent["rows"], key=lambda r: (r["block"], r["log"]))
    bursts, led, of = {}, set(), {}
    out = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for row in rows:
        opinion, rater = reader.opinion(row), row["rater"]
        if opinion is None or rater == agent["owner"]:
            continue
        if rater not in of:
            said = (row["block"], row["value"], row["tag1"], row["tag2"], row["content"])
            burst = ("alone", rater) if row["validation"] else bursts.setdefault(said, ("together", said))
            if graph.weight.get(rater, 0) > least:
                burst = ("alone", rater) if burst in led else burst
                led.add(burst)
            of[rater] = burst
        out[of[rater]][opinion[0]][rater].append(opinion)
    return out


def bounded(bursts, weight):
    """Vouched and unvouched evidence by burst: lists of [value, vouched, pool value, pooled, raters]."""
    for channels in bursts.values():
        opinions, strongest = [], 0.0
        for raters in channels.values():
            heard, unheard = [], []
            for rater, said in raters.items():
                value, strength = merged(said)
                heard.append((value, weight.get(rater, 0) * strength))
                unheard.append((value, (1 - weight.get(rater, 0)) * strength))
                strongest = max(strongest, strength)
            opinions.append([mean(heard), max(w for _, w in heard), mean(unheard), max(w for _, w in unheard),
                             list(raters)])
        most, vouched = max(o[1] for o in opinions), sum(o[1] for o in opinions)
        rest, pooled = strongest - most, sum(o[3] for o in opinions)
        for o in opinions:
            o[1] *= most / vouched if vouched > most else 1
            o[3] *= rest / pooled if pooled > rest else 1
            yield o


def mean(weighted):
    """The mean of values by weight, 0 without weight."""
    total = sum(w for _, w in weighted)
    return sum(v * w for v, w in weighted) / total if total else 0.0


def score(agent, world, reader, graph):
    """The score of an agent: see the module's text for what it holds."""
    p = world["params"]
    e, least = p["evidence"], p["paths"]["minWeight"]
    opinions = list(bounded(read_opinions(agent, reader, graph, least), graph.weight))
    pooled = sum(o[3] for o in opinions)
    for o in opinions:
        o[3] *= e["pool"] / pooled if pooled > e["pool"] else 1
    flows = []
    for side in (lambda o: o[0] >= 0, lambda o: o[0] < 0):
        chosen = [o for o in opinions if side(o)]
        flow = graph.flow({r for o in chosen for r in o[4]}, agent["owner"], least)
        total = sum(o[1] for o in chosen)
        for o in chosen:
            o[1] *= flow / total if total > flow else 1
        flows.append(flow)
    factors = p["negative"]["factors"]
    factor = factors[min(max(int(flows[1] + 2 ** -16), 1), len(factors)) - 1]
    known = e["base"] + sum(o[1] for o in opinions)
    if factor < 1 and known < p["negative"]["full"]:
        factor *= known / p["negative"]["full"]
    for o in opinions:
        o[1] *= factor if o[0] < 0 else 1
    mass = min(1, graph.mass.get(agent["owner"], 0))
    vouching = max(0, 1 + math.log10(mass) / p["prior"]["decades"]) if mass > 0 else 0
    prior = p["prior"]["most"] * vouching
    parts = [(v, w) for o in opinions for v, w in ((o[0], o[1]), (o[2], o[3]))]
    evidence = sum(w for _, w in parts)
    total = e["base"] + evidence
    mu = (e["base"] * prior + sum(v * w for v, w in parts)) / total
    spread = sum(w * (v - mu) ** 2 for v, w in parts) + e["base"] * e["baseVariance"]
    deviation = math.sqrt(max(0, spread)) / total
    vouched = sum(o[1] for o in opinions)
    status = "rated" if evidence / total >= p["rated"]["confidence"] else \
        "thin" if vouched >= p["rated"]["thin"] else "unrated"
    return {"status": status, "score": 0 if status == "unrated" else 100 * mu, "mean": 100 * mu,
            "low": 100 * max(-1, mu - deviation), "high": 100 * min(1, mu + deviation), "evidence": evidence,
            "flowFor": flows[0], "flowAgainst": flows[1]}


def main():
    world = json.load(sys.stdin)
    reader = Reader(world)
    graph = Graph(world, reader)
    json.dump([score(agent, world, reader, graph) for agent in world["agents"]], sys.stdout)


if __name__ == "__main__":
    main()
