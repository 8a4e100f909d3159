#!/usr/bin/env python3
"""The score of repute, written again from docs/explanation/trust.md with floating point numbers.

It is no part of the product. A test compares it with the engine, so that the page says enough to compute a score.
What limits an agent by its relatives (the guard), tiers and gates are left out.

    python3 docs/explanation/trust.py < world.json

The world has params and tags (the two files of parameters), now (Unix seconds), roots with address and weight, agents
with owner and rows (rater, value, tag1, tag2, time, block, log, content, paid in dollars, validation), and credits:
what sources give raters, with their rules. It prints status, score, bounds, evidence and flows of each agent."""
import collections
import json
import math
import sys

DAY = 24 * 60 * 60


def median(values):
    """The middle value, the lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


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
        value = next(y0 + (x - x0) * (y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in zip(curve, curve[1:]) if x <= x1)
        e, paid = self.params["evidence"], 1.0
        decay = 2 ** -((self.now - row["time"]) / (e["halfLifeDays"] * DAY))
        if row["paid"] > 0:
            growth = (e["maxPayment"] - 1) / math.log2(e["fullPayment"] + 1)
            paid = min(e["maxPayment"], 1 + math.log2(1 + row["paid"]) * growth)
        return channel, weight, value, decay, paid


def merged(opinions):
    """One identity's opinion of several rows: its value, and the evidence that it gives at full weight."""
    decay = sum(o[3] for o in opinions)
    if decay == 0:
        return 0.0, 0.0
    value, weight = sum(o[2] * o[3] for o in opinions) / decay, sum(o[1] * o[3] for o in opinions) / decay
    return value, weight * max(o[4] for o in opinions) * max(o[3] for o in opinions)


class Graph:
    """Who vouches for whom, what flows from the roots (mass and weight of each address), and what sources give."""

    def __init__(self, world, reader):
        self.params, pairs, self.known, rated = world["params"]["walk"], collections.defaultdict(list), set(), {}
        for i, agent in enumerate(world["agents"]):
            self.known.add(agent["owner"])
            for row in agent["rows"]:
                opinion = reader.opinion(row)
                if opinion is None:
                    continue
                self.known.add(row["rater"])
                if world["now"] - row["time"] < world["credits"]["days"] * DAY:
                    rated.setdefault(row["rater"], set()).add(i)
                if row["rater"] != agent["owner"]:
                    pairs[row["rater"], agent["owner"]].append(opinion)
        self.edges, self.given = {}, collections.Counter()
        for (giver, to), opinions in pairs.items():
            value, strength = merged(opinions)
            if value > 0:
                weight = min(1, min(1, value / self.params["fullOpinion"]) * strength)
                self.edges[giver, to], self.given[giver] = weight, self.given[giver] + weight
        self.roots = self.shares(world["roots"])
        self.known |= set(self.roots)
        self.mass, self.weight = self.walk_mass(), self.walk_weight()
        self.credits = self.sourced(world["credits"], rated)
        self.granted = {rater: sum(c["amount"] for c in held) for rater, held in self.credits.items()}

    def shares(self, roots):
        """The part of the restart of each root: in proportion to its weight, none above the most."""
        weights, capped = {r["address"]: r["weight"] for r in roots}, {}
        most = max(self.params["maxRootShare"], 1 / max(1, len(weights)))
        while True:
            rest, total = 1 - most * len(capped), sum(w for a, w in weights.items() if a not in capped)
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
        mass, keep = dict(self.roots), 1 - self.params["restart"]
        for _ in range(self.params["iterations"]):
            got = self.pass_on(lambda a, mass=mass: keep * mass.get(a, 0))
            rest, mass = 1 - sum(got.values()), got
            for root, share in self.roots.items():
                mass[root] += rest * share
        full = self.params["fullShare"] * median([mass[r] for r in self.roots])
        return {a: m / full for a, m in mass.items()}

    def walk_weight(self):
        """What everybody receives from those who have weight, at most 1. A root has its own."""
        middle, got = median(list(self.roots.values())), {}
        own = {a: min(1, share / middle) for a, share in self.roots.items()}

        def gives(a):
            if a in own:
                return min(self.params["rootGives"] * own[a], self.params["rootVouch"] * self.given[a])
            return min(self.params["passOn"] * got.get(a, 0), self.params["vouch"] * self.given[a])

        for _ in range(self.params["iterations"]):
            got = self.pass_on(gives)
        return {a: max(own.get(a, 0), min(1, got.get(a, 0))) for a in set(own) | set(got)}

    def sourced(self, given, rated):
        """What sources give each rater beyond its weight: for each source an amount, and the person if there are more."""
        people, out = collections.defaultdict(set), collections.defaultdict(list)
        held = [c for c in given["raters"] if c["rater"] in self.known]
        for c in held:
            people[c["source"], c["subject"]].add(c["rater"])
        for c in held:
            same = people[c["source"], c["subject"]]
            agents = max(1, sum(len(rated.get(rater, ())) for rater in same))
            out[c["rater"]].append({"source": c["source"], "amount": c["weight"] * min(1, given["agents"] / agents),
                                    "person": (c["source"], c["subject"]) if len(same) > 1 else None})
        for rater, credits in out.items():
            for i, kind in enumerate(given["classes"]):
                bound([c for c in credits if given["sources"][c["source"]]["class"] == i], "amount", kind["rater"])
            total = sum(c["amount"] for c in credits)
            for c in credits:
                c["amount"] *= max(0, min(1, total) - self.weight.get(rater, 0)) / total
        return {rater: credits for rater, credits in out.items() if credits[0]["amount"] > 0}

    def flow(self, raters, subject, most=1.0):
        """The most that reaches raters, each up to its number: through every address no more than most, through the
        subject nothing."""
        capacity = collections.defaultdict(dict)

        def arc(a, b, c):
            capacity[a][b] = c
            capacity[b].setdefault(a, 0)

        for a in (set(self.roots) | {a for pair in self.edges for a in pair}) - {subject}:
            arc(("in", a), ("out", a), most)
            if a in self.roots:
                arc("source", ("in", a), 1e9)
            if a in raters:
                arc(("out", a), "sink", raters[a])
        for giver, to in self.edges:
            if subject not in (giver, to):
                arc(("out", giver), ("in", to), 1e9)
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
            way = ["sink"]
            while came[way[-1]] is not None:
                way.append(came[way[-1]])
            amount = min(capacity[b][a] for a, b in zip(way, way[1:]))
            for a, b in zip(way, way[1:]):
                capacity[b][a] -= amount
                capacity[a][b] += amount
            total += amount


class Score:
    """The score of one agent, without what sources give or with it: see the module's text."""

    def __init__(self, agent, world, reader, graph, before=None):
        self.agent, self.graph, self.p, self.reader = agent, graph, world["params"], reader
        self.rules, self.before = world["credits"], before
        self.granted = graph.granted if before else {}
        self.least, e = self.p["paths"]["minWeight"], self.p["evidence"]
        self.opinions = [o for burst in self.bursts().values() for o in self.bounded(burst)]
        bound(self.opinions, "pooled", e["pool"])
        sides = [[o for o in self.opinions if (o["value"] < 0) == against] for against in (False, True)]
        grants, own = self.grants(), [0.0, 0.0]
        for i, side in enumerate(sides):
            own[i] = self.bound_sources([g for g in grants if g["of"] in side], side, ("praise", "blame")[i])
        flows = []
        for side in sides:
            flows.append(graph.flow({r: graph.weight[r] for o in side for r in o["heard"]}, agent["owner"]))
            bound(side, "vouched", flows[-1])
        known = e["base"] + sum(o["vouched"] for o in self.opinions)
        for kind, flow, more in ("vouched", flows[1], 0), ("sourced", own[1], sum(o["sourced"] for o in self.opinions)):
            factor = self.factor(flow, known + more)
            for o in sides[1]:
                o[kind] *= factor
        mass = min(1, graph.mass.get(agent["owner"], 0))
        prior = self.p["prior"]["most"] * max(0, 1 + math.log10(mass) / self.p["prior"]["decades"]) if mass > 0 else 0
        parts = [(o["value"], o["vouched"] + o["sourced"]) for o in self.opinions]
        parts += [(o["poolValue"], o["pooled"]) for o in self.opinions]
        self.evidence = sum(w for _, w in parts)
        total = e["base"] + self.evidence
        self.mean = (e["base"] * prior + sum(v * w for v, w in parts)) / total
        spread = sum(w * (v - self.mean) ** 2 for v, w in parts) + e["base"] * e["baseVariance"]
        deviation = math.sqrt(max(0, spread)) / total
        self.low, self.high = max(-1, self.mean - deviation), min(1, self.mean + deviation)
        if before:
            self.high = max(self.high, min(before.high, self.p["guard"]["below"] / 100))
        self.flows, self.confidence = [flows[0] + own[0], flows[1] + own[1]], self.evidence / total

    def factor(self, flow, known):
        """What evidence against the agent is multiplied by."""
        rule = self.p["negative"]
        factor = rule["factors"][min(max(int(flow + 2 ** -16), 1), len(rule["factors"])) - 1]
        return factor * known / rule["full"] if factor < 1 and known < rule["full"] else factor

    def bursts(self):
        """What is said of the agent: by burst and channel, the rows of each rater."""
        bursts, led, of = {}, set(), {}
        out = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
        for row in sorted(self.agent["rows"], key=lambda r: (r["block"], r["log"])):
            opinion, rater = self.reader.opinion(row), row["rater"]
            if opinion is None or rater == self.agent["owner"]:
                continue
            if rater not in of:
                said = (row["block"], row["value"], row["tag1"], row["tag2"], row["content"])
                burst = ("alone", rater) if row["validation"] else bursts.setdefault(said, ("together", said))
                if max(self.graph.weight.get(rater, 0), self.graph.granted.get(rater, 0)) > self.least:
                    burst = ("alone", rater) if burst in led else burst
                    led.add(burst)
                of[rater] = burst
            out[of[rater]][opinion[0]][rater].append(opinion)
        return out

    def bounded(self, channels):
        """The opinions of a burst, one for each channel, and the evidence of each kind that they give."""
        opinions, burst, rest = [], object(), 0.0
        for raters in channels.values():
            said = [(rater, *merged(rows)) for rater, rows in raters.items()]
            weight, granted = self.graph.weight, self.granted
            kinds = [(v, s, weight.get(r, 0), granted.get(r, 0), r) for r, v, s in said]
            holder = max(kinds, key=lambda k: k[3] * k[1])
            opinions.append({
                "burst": burst, "holder": holder[4], "weight": max(k[2] for k in kinds), "granted": holder[3],
                "heard": [k[4] for k in kinds if k[2] > self.least], "sourced": holder[3] * holder[1],
                "value": mean([(v, (w + g) * s) for v, s, w, g, _ in kinds]), "vouched": max(k[2] * k[1] for k in kinds),
                "poolValue": mean([(v, (1 - w - g) * s) for v, s, w, g, _ in kinds]),
                "pooled": max((1 - w - g) * s for _, s, w, g, _ in kinds)})
            rest = max(rest, max(k[1] for k in kinds))
        for kind in "vouched", "sourced":
            most = max(o[kind] for o in opinions)
            rest -= most
            bound(opinions, kind, most)
        bound(opinions, "pooled", max(0, rest))
        return opinions

    def grants(self):
        """What opinions have by sources, divided among these; a person gives no more than one of its addresses."""
        out = [{"of": o, "amount": o["sourced"] * c["amount"] / o["granted"], "source": c["source"], "person": c["person"]}
               for o in self.opinions if o["sourced"] > 0 for c in self.graph.credits[o["holder"]]]
        for person in {g["person"] for g in out} - {None}:
            same = [g for g in out if g["person"] == person]
            bound(same, "amount", max(g["amount"] for g in same))
        self.persons = [(g["person"], g["of"]["burst"]) for g in out if g["person"]]
        return out

    def bound_sources(self, grants, side, what):
        """Bounds the grants of one side by source, class and all together; returns the independent trust behind it."""
        void = what == "praise" and self.before and self.before.high < self.p["guard"]["below"] / 100
        for i, source in enumerate(self.rules["sources"]):
            bound([g for g in grants if g["source"] == i], "amount", 0 if void else source[what])
        for i, kind in enumerate(self.rules["classes"]):
            bound([g for g in grants if self.rules["sources"][g["source"]]["class"] == i], "amount", kind[what])
        bound(grants, "amount", self.rules["all"][what])
        bursts = collections.defaultdict(lambda: [0.0, 0.0])
        for o in side:
            o["sourced"] = sum(g["amount"] for g in grants if g["of"] is o)
            if o["sourced"] > 0:
                capacity = max(bursts[o["burst"]][1], o["granted"])
                bursts[o["burst"]] = [bursts[o["burst"]][0] + o["sourced"], capacity]
        return sum(min(pair) for pair in bursts.values())

    def raters(self):
        """How much independent raters there are, none of more than a little."""
        each, sums = self.p["rated"]["each"], collections.defaultdict(lambda: [0.0, 0.0])
        names = {o["burst"]: o["burst"] for o in self.opinions}
        for person in {p for p, _ in self.persons}:
            joined = {names[b] for p, b in self.persons if p == person}
            names.update((b, min(joined, key=id)) for b, n in names.items() if n in joined)
        limits = collections.Counter()
        for o in self.opinions:
            pair = sums[names[o["burst"]]]
            pair[:] = pair[0] + o["sourced"], max(pair[1], o["weight"])
            limits[o["burst"]] += o["vouched"]
        heard = {r: min(self.graph.weight[r], limits[o["burst"]]) for o in self.opinions for r in o["heard"]}
        return sum(min(s, max(0, each - w)) for s, w in sums.values()) + self.graph.flow(heard, self.agent["owner"], each)

    def told(self):
        """The answer."""
        rule = self.p["rated"]
        vouched = sum(o["vouched"] + o["sourced"] for o in self.opinions)
        status = "rated" if self.confidence >= rule["confidence"] and \
            self.raters() >= rule["each"] * rule["raters"] - 1e-9 else "thin" if vouched >= rule["thin"] else "unrated"
        return {"status": status, "score": 0 if status == "unrated" else 100 * self.mean, "mean": 100 * self.mean,
                "low": 100 * self.low, "high": 100 * self.high, "evidence": self.evidence, "flowFor": self.flows[0],
                "flowAgainst": self.flows[1]}


def main():
    world = json.load(sys.stdin)
    reader = Reader(world)
    graph, out = Graph(world, reader), []
    for agent in world["agents"]:
        score = Score(agent, world, reader, graph)
        if any(r in graph.granted for o in score.bursts().values() for raters in o.values() for r in raters):
            score = Score(agent, world, reader, graph, score)
        out.append(score.told())
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
