#!/usr/bin/env python3
"""The score of repute, written again from docs/explanation/trust.md; a test compares both. The guard, tiers and gates
are left out. Usage: python3 docs/explanation/trust.py < world.json

The world has params and tags (the two files of parameters), now (Unix seconds), roots with address and weight, agents
with owner and rows (rater, value, tag1, tag2, time, block, log, content, paid in dollars, validation), and credits:
what sources give raters, with their rules. It prints status, score, bounds, evidence and flows of each agent."""
import collections
import json
import math
import statistics
import sys


def bound(items, key, most):
    """Scales one number of each item down, so that they add up to no more than most."""
    total = sum(item[key] for item in items)
    for item in items:
        item[key] *= most / total if total > most else 1


def mean(weighted):
    """The mean of values by weight, 0 without weight."""
    total = sum(w for _, w in weighted)
    return sum(v * w for v, w in weighted) / total if total else 0.0


class Reader:
    """Turns rows into opinions, by the two files of parameters: read, and rows without those of the owner."""
    def __init__(self, world):
        self.params, self.tags, self.now = world["params"], world["tags"], world["now"]
        self.use = {c["name"]: c["use"] for c in self.tags["channels"]}
        self.rules = {name: rule for rule in self.tags["tags"] for name in rule["tags"]}
        self.wrote = collections.defaultdict(list)
        for row in (row for agent in world["agents"] for row in agent["rows"]):
            if not row["validation"] and self.rule(row) and 0 < row["time"] <= self.now and float(row["value"]) > 0:
                self.wrote[row["rater"], row["tag1"]].append(float(row["value"]))
        for agent in world["agents"]:
            read = [dict(row, opinion=self.opinion(row)) for row in agent["rows"]]
            agent["read"] = sorted((r for r in read if r["opinion"]), key=lambda r: (r["block"], r["log"]))
            agent["rows"] = [r for r in agent["read"] if r["rater"] != agent["owner"]]

    def rule(self, row):
        """Channel, weight and curve of a row; None where it does not count."""
        v, rule = self.tags["validation"], self.rules.get(row["tag1"])
        if row["validation"]:
            return v["channel"], v["weight"] * v["finality"].get(row["tag1"], v["finality"][""]), v["curve"]
        counts = rule and self.use[rule["channel"]] == "score" and rule["weight"] > 0
        return (rule["channel"], rule["weight"], rule["curve"]) if counts else None

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
        (channel, weight, curve), e = rule, self.params["evidence"]
        x = float(row["value"]) if row["validation"] else self.on_own_scale(row)
        if x is None or not curve[0][0] <= x <= curve[-1][0]:
            return None
        value = next(y0 + (x - x0) * (y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in zip(curve, curve[1:]) if x <= x1)
        decay = 2 ** -((self.now - row["time"]) / (e["halfLifeDays"] * 86400))
        growth = (e["maxPayment"] - 1) / math.log2(e["fullPayment"] + 1)
        return channel, weight, value, decay, min(e["maxPayment"], 1 + math.log2(1 + row["paid"]) * growth)


def merged(opinions):
    """One identity's opinion of several rows: its value, and the evidence that it gives at full weight."""
    value, weight = mean([(o[2], o[3]) for o in opinions]), mean([(o[1], o[3]) for o in opinions])
    return value, weight * max(o[4] for o in opinions) * max(o[3] for o in opinions)


class Graph:
    """Who vouches for whom, what flows from the roots (mass and weight of each address), and what sources give."""
    def __init__(self, world):
        self.params, pairs, rated = world["params"]["walk"], collections.defaultdict(list), collections.defaultdict(set)
        for i, agent in enumerate(world["agents"]):
            for row in agent["read"]:
                rated[row["rater"]] |= {i} if world["now"] - row["time"] < world["credits"]["days"] * 86400 else set()
            for row in agent["rows"]:
                pairs[row["rater"], agent["owner"]].append(row["opinion"])
        self.edges, self.given = {}, collections.Counter()
        for (giver, to), (value, strength) in ((pair, merged(opinions)) for pair, opinions in pairs.items()):
            if value > 0:
                self.edges[giver, to] = min(1, min(1, value / self.params["fullOpinion"]) * strength)
                self.given[giver] += self.edges[giver, to]
        self.roots = self.shares(world["roots"])
        self.known = set(self.roots) | set(rated) | {agent["owner"] for agent in world["agents"]}
        self.mass, self.weight = self.walk_mass(), self.walk_weight()
        self.credits = self.sourced(world["credits"], rated)
        self.granted = {rater: sum(c["amount"] for c in held) for rater, held in self.credits.items()}

    def shares(self, roots):
        """The part of the restart of each root: in proportion to its weight, none above the most."""
        weights, heavy, most = {r["address"]: r["weight"] for r in roots}, set(), self.params["maxRootShare"]
        most = max(most, 1 / len(roots))
        for _ in roots:
            rest, total = 1 - most * len(heavy), sum(w for a, w in weights.items() if a not in heavy)
            shares = {a: most if a in heavy else rest * w / total for a, w in weights.items()}
            heavy |= {a for a, share in shares.items() if share > most + 1e-9}
        return shares

    def pass_on(self, gives):
        """What each address receives when each gives what gives says, in proportion to its praise."""
        got = collections.Counter()
        for (giver, to), weight in self.edges.items():
            got[to] += gives(giver) * weight / self.given[giver]
        return got

    def walk_mass(self):
        """Rounds in which everybody passes on what he has, but for the restart; what is left starts at the roots."""
        mass, keep = dict(self.roots), 1 - self.params["restart"]
        for _ in range(self.params["iterations"]):
            got = self.pass_on(lambda a, mass=mass: keep * mass.get(a, 0))
            rest, mass = 1 - sum(got.values()), got
            for root, share in self.roots.items():
                mass[root] += rest * share
        full = self.params["fullShare"] * statistics.median_low([mass[r] for r in self.roots])
        return {a: m / full for a, m in mass.items()}

    def walk_weight(self):
        """What everybody receives from those who have weight, at most 1. A root has its own."""
        p, middle, got = self.params, statistics.median_low(self.roots.values()), {}
        own = {a: min(1, share / middle) for a, share in self.roots.items()}
        for _ in range(p["iterations"]):
            got = self.pass_on(lambda a, got=got: min(p["rootGives"] * own[a], p["rootVouch"] * self.given[a])
                               if a in own else min(p["passOn"] * got.get(a, 0), p["vouch"] * self.given[a]))
        return {a: max(own.get(a, 0), min(1, got.get(a, 0))) for a in set(own) | set(got)}

    def sourced(self, given, rated):
        """What sources give each rater beyond its weight: from each an amount, and the person if others have it too."""
        out, held = collections.defaultdict(list), [c for c in given["raters"] if c["rater"] in self.known]
        for c, person in ((c, (c["source"], c["subject"])) for c in held):
            same = {d["rater"] for d in held if (d["source"], d["subject"]) == person}
            part = min(1, given["agents"] / max(1, sum(len(rated[rater]) for rater in same)))
            out[c["rater"]].append({"source": c["source"], "class": given["sources"][c["source"]]["class"],
                                    "amount": c["weight"] * part, "person": person if len(same) > 1 else None})
        for rater, credits in out.items():
            for i, kind in enumerate(given["classes"]):
                bound([c for c in credits if c["class"] == i], "amount", kind["rater"])
            total = sum(c["amount"] for c in credits)
            for c in credits:
                c["amount"] *= max(0, min(1, total) - self.weight.get(rater, 0)) / total
        return {rater: credits for rater, credits in out.items() if credits[0]["amount"] > 0}

    def flow(self, raters, subject, most=1.0):
        """The most that reaches raters, each up to its number, by addresses that pass up to most, not the subject."""
        capacity, total = collections.defaultdict(dict), 0.0
        arcs = [(("out", giver), ("in", to), 1e9) for giver, to in self.edges if subject not in (giver, to)]
        for a in (set(self.roots) | {a for pair in self.edges for a in pair}) - {subject}:
            arcs += [(("in", a), ("out", a), most), (("out", a), "sink", raters.get(a, 0))]
            arcs += [("source", ("in", a), 1e9)] if a in self.roots else []
        for a, b, c in arcs:
            capacity[a][b] = c
            capacity[b].setdefault(a, 0)
        while True:
            came, queue = {"source": None}, ["source"]
            for at in queue:
                new = [to for to, free in capacity[at].items() if free > 1e-12 and to not in came]
                came.update((to, at) for to in new)
                queue += new
            if "sink" not in came:
                return total
            steps = [(came["sink"], "sink")]
            while steps[-1][0] != "source":
                steps.append((came[steps[-1][0]], steps[-1][0]))
            amount = min(capacity[a][b] for a, b in steps)
            total += amount
            for a, b in steps:
                capacity[a][b], capacity[b][a] = capacity[a][b] - amount, capacity[b][a] + amount


class Score:
    """The score of one agent: without what sources give, and then with it where they say anything."""
    def __init__(self, agent, world, graph):
        self.agent, self.graph, self.p, self.rules = agent, graph, world["params"], world["credits"]
        self.least, self.below = self.p["paths"]["minWeight"], self.p["guard"]["below"] / 100
        self.granted, self.before = {}, 1.0  # what sources give, and the upper bound without it
        self.weigh()
        if any(row["rater"] in graph.granted for row in agent["rows"]):
            self.granted, self.before = graph.granted, self.high
            self.weigh()
            self.high = max(self.high, min(self.before, self.below))

    def weigh(self):
        """Bounds and averages the opinions."""
        e, rule, agent, graph = self.p["evidence"], self.p["negative"], self.agent, self.graph
        self.opinions = [o for i, burst in enumerate(self.bursts().values()) for o in self.bounded(i, burst)]
        bound(self.opinions, "pooled", e["pool"])
        sides, own, flows = [[], []], [], []
        grants = [dict(c, of=o, amount=o["sourced"] * c["amount"] / o["granted"])
                  for o in self.opinions if o["sourced"] > 0 for c in graph.credits[o["holder"]]]
        for person in {g["person"] for g in grants} - {None}:
            same = [g for g in grants if g["person"] == person]
            bound(same, "amount", max(g["amount"] for g in same))
            voices = {g["of"]["voice"] for g in same}
            for o in self.opinions:
                o["voice"] = min(voices) if o["voice"] in voices else o["voice"]
        for o in self.opinions:
            sides[o["value"] < 0].append(o)
        for side, what in zip(sides, ("praise", "blame")):
            own.append(self.bound_sources([g for g in grants if g["of"] in side], side, what))
            flows.append(graph.flow({r: graph.weight[r] for o in side for r in o["heard"]}, agent["owner"]))
            bound(side, "vouched", flows[-1])
        known = e["base"] + sum(o["vouched"] for o in self.opinions)
        for kind, flow, more in ("vouched", flows[1], 0), ("sourced", own[1], sum(o["sourced"] for o in self.opinions)):
            factor = rule["factors"][min(max(int(flow + 2 ** -16), 1), len(rule["factors"])) - 1]
            factor *= min(1, (known + more) / rule["full"]) if factor < 1 else 1
            for o in sides[1]:
                o[kind] *= factor
        mass = min(1, graph.mass.get(agent["owner"], 0))
        prior = self.p["prior"]["most"] * max(0, 1 + math.log10(mass) / self.p["prior"]["decades"]) if mass > 0 else 0
        parts = [(o["value"], o["vouched"] + o["sourced"]) for o in self.opinions]
        parts += [(o["poolValue"], o["pooled"]) for o in self.opinions]
        total = e["base"] + sum(w for _, w in parts)
        self.mean = (e["base"] * prior + sum(v * w for v, w in parts)) / total
        deviation = math.sqrt(sum(w * (v - self.mean) ** 2 for v, w in parts) + e["base"] * e["baseVariance"]) / total
        self.low, self.high = max(-1, self.mean - deviation), min(1, self.mean + deviation)
        self.flows, self.evidence = [flows[0] + own[0], flows[1] + own[1]], total - e["base"]

    def bursts(self):
        """What is said of the agent: by burst and channel, the opinions of each rater."""
        bursts, led, of, out = {}, set(), {}, {}
        for row in self.agent["rows"]:
            rater, said = row["rater"], (row["block"], row["value"], row["tag1"], row["tag2"], row["content"])
            if rater not in of:
                burst = ("alone", rater) if row["validation"] else bursts.setdefault(said, ("together", said))
                if max(self.graph.weight.get(rater, 0), self.graph.granted.get(rater, 0)) > self.least:
                    burst = ("alone", rater) if burst in led else burst
                    led.add(burst)
                of[rater] = burst
            out.setdefault(of[rater], {}).setdefault(row["opinion"][0], {}).setdefault(rater, []).append(row["opinion"])
        return out

    def bounded(self, burst, channels):
        """The opinions of a burst, one for each channel, and the evidence of each kind that they give."""
        opinions, rest = [], 0.0
        for raters in channels.values():
            said = [(r, self.graph.weight.get(r, 0), self.granted.get(r, 0), *merged(o)) for r, o in raters.items()]
            holder, _, granted, _, strength = max(said, key=lambda x: x[2] * x[4])
            vouched, pooled = [w * s for _, w, _, _, s in said], [(1 - w - g) * s for _, w, g, _, s in said]
            opinions.append({
                "burst": burst, "voice": burst, "holder": holder, "granted": granted, "sourced": granted * strength,
                "weight": max(w for _, w, *_ in said), "heard": [r for r, w, *_ in said if w > self.least],
                "value": mean([(v, (w + g) * s) for _, w, g, v, s in said]), "vouched": max(vouched),
                "poolValue": mean([(x[3], p) for x, p in zip(said, pooled)]), "pooled": max(pooled)})
            rest = max(rest, max(s for *_, s in said))
        for kind in "vouched", "sourced":
            most = max(o[kind] for o in opinions)
            rest -= most
            bound(opinions, kind, most)
        bound(opinions, "pooled", max(0, rest))
        return opinions

    def bound_sources(self, grants, side, what):
        """Bounds the grants of one side by source, class and all together; returns the independent trust behind it."""
        bursts, void = {}, what == "praise" and self.before < self.below
        for key, rules in ("source", self.rules["sources"]), ("class", self.rules["classes"]):
            for i, rule in enumerate(rules):
                bound([g for g in grants if g[key] == i], "amount", 0 if void else rule[what])
        bound(grants, "amount", self.rules["all"][what])
        for o in side:
            o["sourced"] = sum(g["amount"] for g in grants if g["of"] is o)
            if o["sourced"] > 0:
                more, capacity = bursts.get(o["burst"], (0, 0))
                bursts[o["burst"]] = more + o["sourced"], max(capacity, o["granted"])
        return sum(min(pair) for pair in bursts.values())

    def told(self):
        """The answer. Raters count up to a little each, where it asks how many are independent."""
        rule, sums, limits, base = self.p["rated"], {}, collections.Counter(), self.p["evidence"]["base"]
        for o in self.opinions:
            more, weight = sums.get(o["voice"], (0, 0))
            sums[o["voice"]] = more + o["sourced"], max(weight, o["weight"])
            limits[o["burst"]] += o["vouched"]
        heard = {r: min(self.graph.weight[r], limits[o["burst"]]) for o in self.opinions for r in o["heard"]}
        raters = sum(min(sourced, max(0, rule["each"] - weight)) for sourced, weight in sums.values())
        raters += self.graph.flow(heard, self.agent["owner"], rule["each"])
        confidence = self.evidence / (self.evidence + base)
        rated = confidence >= rule["confidence"] and raters >= rule["each"] * rule["raters"] - 1e-9
        thin = sum(o["vouched"] + o["sourced"] for o in self.opinions) >= rule["thin"]
        return dict(status="rated" if rated else "thin" if thin else "unrated", score=100 * self.mean * (rated or thin),
                    mean=100 * self.mean, low=100 * self.low, high=100 * self.high, evidence=self.evidence,
                    flowFor=self.flows[0], flowAgainst=self.flows[1])


if __name__ == "__main__":
    WORLD = json.load(sys.stdin)
    Reader(WORLD)
    GRAPH = Graph(WORLD)
    json.dump([Score(agent, WORLD, GRAPH).told() for agent in WORLD["agents"]], sys.stdout)
