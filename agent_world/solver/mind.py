"""One episode of the solver: reads the instruction, acts part by part, and answers.

A mind is a generator: it yields steps, is sent observations, and ends with the answer.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from agent_world.environments.model import Json
from agent_world.rollouts.model import Observation, Step, Turn
from agent_world.solver.answers import empty, fitted, text_of
from agent_world.solver.deeds import Deed, Order, orders
from agent_world.solver.goals import IDENTITY_ASKED, Goal, Reading, Wish, adds_up, align, goals_of, is_strong, readings, residual
from agent_world.solver.index import IndexedTool, Parameter, Toolbox, merge, toolbox_of
from agent_world.solver.lexicon import fold, stem
from agent_world.solver.places import Places
from agent_world.solver.plan import Chance, Plan, Planner
from agent_world.solver.reading import Branch, Clause, Compare, Constraint, Extreme, Mention, Part, flat, mark_of, read
from agent_world.solver.run import Row, Runner, SetbackError, SpentError, compared, value_at

Thinking = Generator[Step, Observation, Json]

_TRIES = 4
_SURE = 0.62  # how well a verb must fit before something is written because of it


class Mind:
    """What one episode knows and has done."""

    def __init__(self, turn: Turn, noise: random.Random, temperature: float, budget: int) -> None:
        self.schema = turn.answer_schema
        self.box: Toolbox = toolbox_of(turn.tools)
        self.runner = Runner(self.box, budget)
        self.chance = Chance(noise, temperature)
        self.places = Places(self.box)
        self.planner = Planner(self.box, self.chance, self.runner.recall, self.places)
        self.parts = read(turn.instruction, self.box)
        self.clauses = flat(self.parts)
        names = [one.text for clause in self.clauses for one in clause.mentions if one.kind == "name"]
        self.goals = goals_of(turn.answer_schema, self.box, names)
        self.aligned = align(self.goals, self.clauses, self.box)
        self.conditions = [part.condition for part in self.parts if isinstance(part, Branch) and part.condition is not None]
        self.answers: dict[str, Json] = {}
        self.deeds: list[Deed] = []
        self.acted: dict[int, list[Deed]] = {}
        self.checked: list[Constraint] = []
        self.repeated = False

    def live(self) -> Thinking:
        """Acts and gives the answer."""
        try:
            for number, part in enumerate(self.parts):
                following = self.parts[number + 1] if number + 1 < len(self.parts) else None
                yield from self._part(part, following)
            for goal in self.goals:
                yield from self._settle(goal)
        except SpentError:
            pass
        properties = self.schema.get("properties", {})
        answer = {}
        for goal in self.goals:
            value = fitted(self.answers.get(goal.name), properties[goal.name])
            answer[goal.name] = empty(properties[goal.name]) if value is None else value
        return answer

    # Orders ---------------------------------------------------------------------------------------------------

    def _part(self, part: Part, following: Part | None) -> Generator[Step, Observation, None]:
        if isinstance(part, Clause):
            spare = isinstance(following, Branch) and following.condition is None
            yield from self._clause(part, spare)
            return
        if part.condition is None:
            failed = bool(self.deeds) and self.deeds[-1].result is None
            chosen = part.then if failed else part.otherwise
            instead = self.deeds[-1] if failed else None
        else:
            holds = yield from self._truth(part.condition, self._inherited(part.condition))
            chosen = part.then if holds != part.negated else part.otherwise
            instead = None
        others = [clause for clause in (*part.then, *part.otherwise) if clause not in chosen]
        for clause in chosen:
            if instead is None and others and part.condition is not None:
                like = orders(others[0], self.planner, self.deeds)[0] if self.box.writing() else None
                if like is not None and like.verb >= _SURE:
                    pattern = Deed(tool=like.tool, arguments={}, result=None, clause=others[0], constraints=others[0].constraints)
                    yield from self._clause(clause, False, instead=pattern, others=others)
                    continue
            yield from self._clause(clause, False, instead=instead, others=others)

    def _clause(self, clause: Clause, spare: bool, instead: Deed | None = None,
                others: Sequence[Clause] = ()) -> Generator[Step, Observation, None]:
        if not self.box.writing() or (clause.kind == "ask" and not self._orders_something(clause)):
            return
        found = orders(clause, self.planner, self.deeds)
        if instead is not None and found[0].verb < _SURE:
            found.sort(key=lambda order: order.tool is not instead.tool)
        before, tried = len(self.deeds), False
        for order in found[:3]:
            again = instead is not None and order.tool is instead.tool
            plain = clause.kind == "do" and _complete(order, spare) and (
                tried or not before and not self._ordered_elsewhere(clause))
            if not (order.verb >= _SURE or again or plain):
                continue
            tried = True
            if len(self.deeds) == before:
                for goal in self.goals:
                    clauses = self.aligned[goal.name]
                    first = clauses[0][0] if clauses else None
                    if first and first.kind == "ask" and first.position < clause.position and first not in self.conditions:
                        yield from self._settle(goal)
            self.repeated = False
            yield from self._perform(order, clause, spare, instead, others)
            if self.repeated or any(deed.result is not None for deed in self.deeds[before:]) or again or (spare and len(self.deeds) > before):
                return

    def _ordered_elsewhere(self, clause: Clause) -> bool:
        """Whether another clause says with a telling verb what is to be done."""
        others = [one for one in self.clauses if one is not clause and one.kind == "do"]
        return any(orders(one, self.planner, ())[0].verb >= _SURE for one in others)

    def _orders_something(self, clause: Clause) -> bool:
        first = clause.tokens[0].low if clause.tokens else ""
        if any(token.low in ("which", "what", "who", "how", "when", "where", "whether") for token in clause.tokens[:3]):
            return False
        return first in ("check", "give", "let", "add", "list", "sum", "count", "return", "find", "look", "see", "state", "report") and (
            "me" not in [token.low for token in clause.tokens[:3]])

    def _perform(self, order: Order, clause: Clause, spare: bool, instead: Deed | None,
                 others: Sequence[Clause]) -> Generator[Step, Observation, None]:
        constraints = list(clause.constraints)
        tool = order.tool
        if instead is not None and instead.tool is tool and order.verb < _SURE:
            constraints = self._exchanged(tool, constraints, instead)
        together = [one for one in constraints if isinstance(one, Mention) and one.group is not None]
        if together:
            constraints = [one for one in constraints if one not in together[1:]]
        for attempt in range(_TRIES):
            plan = self.planner.build(tool, constraints)
            if plan.missing and attempt == 0 and (yield from self._each_of_them(tool, clause)):
                return
            if plan.missing:
                plan, constraints = self._filled(tool, plan, constraints, clause, instead, others)
            if plan.missing and attempt == 0:
                made = yield from self._create_for(tool, plan, clause)
                if made:
                    continue
            if plan.missing:
                return
            try:
                done = yield from self._execute(tool, plan, clause, constraints)
            except SetbackError as setback:
                if not setback.blame or set(setback.blame) <= self.places.banned:
                    return
                self.places.ban(set(setback.blame))
                continue
            if done and done[-1].result is None and not spare:
                helped = yield from self._unblock(done[-1], clause)
                if helped:
                    continue
            yield from self._repeat(tool, plan, constraints, together, clause)
            return

    def _execute(self, tool: IndexedTool, plan: Plan, clause: Clause, constraints: Sequence[Constraint]):
        """Makes the call, or one call for every row when the order is about each of them."""
        combinations = yield from self.runner._arguments(plan.query)
        if len(combinations) > 1 and not clause.each and not _plural(clause, constraints):
            combinations = combinations[:1]
        done = []
        for arguments in combinations:
            if any(deed.tool is tool and deed.arguments == arguments and deed.result is not None for deed in self.deeds):
                self.repeated = True
                continue
            observation = yield from self.runner.call(tool, arguments)
            result = observation.value if observation.status == "ok" and isinstance(observation.value, Mapping) else None
            deed = Deed(tool=tool, arguments=arguments, result=result, clause=clause, constraints=tuple(constraints))
            self.deeds.append(deed)
            for position in self._told_by(deed):
                self.acted.setdefault(position, []).append(deed)
            done.append(deed)
            if result is not None:
                for name, value in arguments.items():
                    led = plan.query.origins.get(name, frozenset()) if len(combinations) == 1 else frozenset()
                    self.runner.note(tool, {name: value}, led)
                fresh = {name: value for name, value in result.items() if arguments.get(name) != value}
                self.runner.note(tool, fresh, plan.query.marks)
            else:
                self.refusal = observation
        return done

    def _told_by(self, deed: Deed) -> list[int]:
        """The clauses that told of a deed: its own, and those that lent it all their names."""
        others = [one for one in self.clauses if one is not deed.clause and one.kind == "do" and one not in self.conditions]
        lenders = [one for one in others if one.mentions and set(map(id, one.mentions)) <= set(map(id, deed.constraints))]
        return [deed.clause.position, *(one.position for one in lenders)]

    def _filled(self, tool: IndexedTool, plan: Plan, constraints: list[Constraint], clause: Clause, instead: Deed | None,
                others: Sequence[Clause]) -> tuple[Plan, list[Constraint]]:
        """Looks for what is missing in the clauses around: the refused order, the other branch, what was said before."""
        earlier = [one for one in self.clauses if one.position < clause.position and one.position not in self.acted]
        missing, fed, chosen = list(plan.missing), dict(plan.query.fed), list(constraints)
        if earlier and clause.refers:
            told = [one for one in earlier[-1].constraints if one not in chosen]
            if earlier[-1] in self.conditions:
                told = [one for one in told if isinstance(one, Mention) and one.kind == "name"]
            for parameter in [one for one in plan.missing if told and one.role == "id"]:
                found = self.planner.feed(tool, parameter, told)
                if found is not None:
                    fed[parameter.name] = found
                    missing.remove(parameter)
                    chosen += told
                    break
        pool: list[Constraint] = [*(instead.constraints if instead else ())]
        for other in others:
            pool += other.constraints
        for other in sorted(self.clauses, key=lambda one: (one.position > clause.position, abs(one.position - clause.position))):
            if other is not clause:
                pool += other.constraints
        given = dict(plan.query.given)
        for parameter in list(missing):
            scored = []
            for rank, one in enumerate(pool):
                if one in chosen:
                    continue
                score = self.places.fit(one, parameter, tool)
                if score is None:
                    score = max((0.8 * self.places.best(one, link.tool, 1)
                                 for link in self.box.links.get((tool.name, parameter.name), ()) if not link.tool.writes), default=0.0)
                if parameter.role == "number" and abs(score - 0.3) < 0.01 and rank < 2:
                    score = 0.9  # a bare number in the clause before: "She needs three."
                if score > 0.3:
                    scored.append((score - 0.04 * rank, -rank, one))
            if scored:
                one = max(scored, key=lambda entry: entry[:2])[2]
                found = self.planner.feed(tool, parameter, [one])
                if self.places.fit(one, parameter, tool) is not None:
                    given[parameter.name] = self.planner.value_for(parameter, one)
                elif found is not None:
                    fed[parameter.name] = found
                else:
                    continue
                chosen.append(one)
                missing.remove(parameter)
            elif parameter.role == "enum" and (value := self._meant(parameter, clause)) is not None:
                given[parameter.name] = value
                missing.remove(parameter)
            elif parameter.role == "number":
                given[parameter.name] = 1
                missing.remove(parameter)
        return replace(plan, missing=tuple(missing), query=replace(plan.query, given=given, fed=fed)), chosen

    def _meant(self, parameter: Parameter, clause: Clause) -> Json:
        """The allowed value whose meaning the clause, or one before it, speaks of."""
        for near in sorted(self.clauses, key=lambda one: (one.position > clause.position, abs(one.position - clause.position))):
            scored = [(self.box.match(parameter.meanings[str(value)], near.content), -number, value)
                      for number, value in enumerate(parameter.enum)]
            score, _, value = max(scored, key=lambda entry: entry[:2])
            if score > 0.4:
                return value
        return None

    def _exchanged(self, tool: IndexedTool, constraints: list[Constraint], instead: Deed) -> list[Constraint]:
        """The constraints of a refused order with what the new one names in their place."""
        fresh = {one.kind for one in constraints if isinstance(one, Mention)}
        if not fresh:
            return constraints
        best: tuple[float, int, list[Constraint]] | None = None
        for number, old in enumerate(instead.constraints):
            if not isinstance(old, Mention) or old.kind not in fresh:
                continue
            kept = [one for one in instead.constraints if one is not old and one not in constraints] + constraints
            plan = self.planner.build(tool, kept)
            score = plan.score - 2 * len(plan.missing) - len([one for one in plan.left if is_strong(one)])
            if best is None or score > best[0]:
                best = score, number, kept
        return best[2] if best is not None else constraints

    def _create_for(self, tool: IndexedTool, plan: Plan, clause: Clause) -> Generator[Step, Observation, bool]:
        """Makes first what the order needs an id of, when some tool creates it."""
        for parameter in plan.missing:
            for link in self.box.links.get((tool.name, parameter.name), ()):
                if not link.tool.writes or any(deed.tool is link.tool for deed in self.deeds):
                    continue
                inner = self.planner.build(link.tool, clause.constraints)
                constraints = list(clause.constraints)
                if inner.missing:
                    inner, constraints = self._filled(link.tool, inner, constraints, clause, None, ())
                if not inner.missing:
                    return (yield from self._attempt(link.tool, inner, clause, constraints))
        return False

    def _attempt(self, tool: IndexedTool, plan: Plan, clause: Clause,
                 constraints: Sequence[Constraint]) -> Generator[Step, Observation, bool]:
        try:
            done = yield from self._execute(tool, plan, clause, constraints)
        except SetbackError as setback:
            self.places.ban(set(setback.blame))
            return False
        return bool(done) and done[-1].result is not None

    def _unblock(self, deed: Deed, clause: Clause) -> Generator[Step, Observation, bool]:
        """After a refusal: does first what its message asks for, when a tool does that to the same thing."""
        error = self.refusal.value.get("error", {}) if isinstance(self.refusal.value, Mapping) else {}
        words = {stem(word): 1.0 for word in fold(str(error.get("message", ""))).replace(".", " ").replace(";", " ").split()}
        for tool in self.box.writing():
            if tool is deed.tool or any(one.tool is tool for one in self.deeds):
                continue
            verb = max((self.box.closest(word, {known: weight for known, weight in tool.verb.items() if weight == 1.0})
                        for word in words), default=0.0)
            plan = self.planner.build(tool, ())
            if verb >= 0.95 and not plan.missing:
                return (yield from self._attempt(tool, plan, clause, ()))
        return False

    def _repeat(self, tool: IndexedTool, plan: Plan, constraints: Sequence[Constraint], together: Sequence[Mention],
                clause: Clause) -> Generator[Step, Observation, None]:
        """The same order for further names in the same breath ("A and B"), or what is to be done with them next.

        A list that was begun "with A and B" gets them by the tool that adds to it.
        """
        names = [one for one in plan.left if is_strong(one) and one not in together[1:]]
        if together and together[0] not in plan.left:
            for extra in together[1:]:
                again = self.planner.build(tool, [extra if one is together[0] else one for one in constraints])
                if not again.missing:
                    yield from self._attempt(tool, again, clause, constraints)
        else:
            names += [one for one in together[1:] if one not in names]
        for extra in sorted(names, key=lambda one: one.at):
            following = self._following(tool, extra, plan.left)
            if following is not None:
                yield from self._attempt(following.query.tool, following, clause, [extra])

    def _each_of_them(self, tool: IndexedTool, clause: Clause) -> Generator[Step, Observation, bool]:
        """The order for each of several things named before ("two of A and one of B ... put them in")."""
        if not any(token.low in ("them", "these", "those", "both") for token in clause.tokens):
            return False
        earlier = [one for one in self.clauses if one.position < clause.position and
                   sum(1 for mention in one.mentions if mention.kind == "name") > 1]
        if not earlier:
            return False
        done = False
        mentions = earlier[-1].mentions
        for name in [one for one in mentions if one.kind == "name"]:
            number = [one for one in mentions if one.kind == "number" and 0 < name.at - one.at <= 4]
            plan = self.planner.build(tool, [*number[-1:], name])
            if name not in plan.left and not [one for one in plan.missing if one.role != "number"]:
                given = {**plan.query.given, **{one.name: 1 for one in plan.missing}}
                plan = replace(plan, missing=(), query=replace(plan.query, given=given))
                done = (yield from self._attempt(tool, plan, clause, [name])) or done
        return done

    def _following(self, tool: IndexedTool, extra: Mention, spare: Sequence[Constraint]) -> Plan | None:
        """The order that takes a left-over name to what was just made."""
        best: tuple[float, Plan] | None = None
        for other in self.box.writing():
            uses = any((link.tool is tool) for one in other.required for link in self.box.links.get((other.name, one.name), ()))
            if other is tool or not uses:
                continue
            number = [one for one in spare if isinstance(one, Mention) and one.kind == "number"]
            plan = self.planner.build(other, [*number[:1], extra])
            if plan.missing and all(one.role == "number" for one in plan.missing):
                ones = {one.name: 1 for one in plan.missing}
                plan = replace(plan, missing=(), query=replace(plan.query, given={**plan.query.given, **ones}))
            score = plan.score + max(self.box.closest(stem(word), other.verb) for word in ("add", "put", "include"))
            if not plan.missing and extra not in plan.left and (best is None or score > best[0]):
                best = score, plan
        return best[1] if best is not None and best[0] > 1.2 else None

    # Conditions -----------------------------------------------------------------------------------------------

    def _truth(self, clause: Clause, constraints: Sequence[Constraint]) -> Generator[Step, Observation, bool]:
        pair = self._pair(constraints, clause.comparative)
        if pair and clause.comparative is not None:
            first, second = yield from self._measures(pair, constraints, clause.comparative, {}, clause)
            result = first is not None and second is not None and (first > second) == self.upward and first != second
            return result != clause.negated
        compares = [one for one in constraints if isinstance(one, Compare)]
        words = {token.low for token in clause.tokens}
        exists = "there" in words and bool(words & {"a", "an", "any", "no", "some"}) and not any(
            one.operator == "ge" or one.at < 4 for one in compares)
        if compares and not exists:
            for main in compares:
                rest = tuple(one for one in constraints if one is not main)
                numeric = not isinstance(main.value, str)
                wish = Wish(words=main.context, around=residual(clause), head=clause.head, kind="number" if numeric else "string",
                            numeric=numeric, constraints=rest, summaries=clause.summaries | {"count"}, own=frozenset())
                if main.degrees and not main.context:
                    wish = replace(wish, words=self._degree_words(main))
                value = yield from self._first(wish)
                if value is not None:
                    keep = compared(value, main.operator, main.value, main.upper)
                    return keep != clause.negated
            return False
        found = yield from self._exists(clause, constraints)
        negated = clause.negated or "no" in words
        return found != negated

    def _exists(self, clause: Clause, constraints: Sequence[Constraint]) -> Generator[Step, Observation, bool]:
        wish = Wish(words={}, around=residual(clause), head=clause.head, kind="integer", numeric=True, constraints=tuple(constraints),
                    summaries=frozenset({"count"}), own=frozenset({"count"}))
        for query in self._by_coverage(wish):
            try:
                rows = yield from self.runner.rows(query)
            except SetbackError:
                return False
            if not query.tool.items:
                self.checked += [one for one in constraints if mark_of(one) in {str(keep.value) for keep in query.keeps}]
            if len(rows) == 1:
                for name, value in query.given.items():
                    self.runner.note(query.tool, {name: value}, query.origins.get(name, frozenset()))
                self.runner.note(query.tool, rows[0], query.marks)
            return bool(rows)
        return False

    def _by_coverage(self, wish: Wish):
        plans = []
        for tool in self.box.reading():
            plan = self.planner.build(tool, wish.constraints, check=True)
            if not plan.missing:
                score = plan.score - len(plan.left) + 0.4 * self.box.touch(wish.around, tool.nouns) - 0.07 * plan.query.calls()
                plans.append((score + self.chance("exists", tool.name), plan.query))
        return [query for _, query in sorted(plans, key=lambda pair: -pair[0])][:1]

    # Goals ----------------------------------------------------------------------------------------------------

    def _settle(self, goal: Goal) -> Generator[Step, Observation, None]:
        if goal.name in self.answers:
            return
        self.answers[goal.name] = None
        wish, clause = self._wish(goal)
        comparative = goal.phrase.comparative or (clause.comparative if clause else None) or self._comparative_before(clause)
        pair = self._pair(wish.constraints, comparative) if (
            comparative is not None or "difference" in wish.own | wish.summaries or "sum" in wish.own | wish.summaries) else None
        if goal.kind == "boolean" and clause is not None:
            source = goal.phrase if goal.phrase.constraints else clause
            self.answers[goal.name] = yield from self._truth(replace(source, comparative=source.comparative or comparative),
                                                             wish.constraints)
            return
        if pair is not None:
            value = yield from self._combined(goal, wish, pair, comparative, clause)
            if value is not None:
                self.answers[goal.name] = value
                return
        self.answers[goal.name] = yield from self._first(wish, goal, clause)

    def _wish(self, goal: Goal) -> tuple[Wish, Clause | None]:
        clauses = self.aligned[goal.name]
        clause = clauses[0][0] if clauses else None
        phrase = goal.phrase
        compared = phrase.comparative is not None and clause is not None and clause.comparative is not None
        named = [one for one in phrase.constraints if is_strong(one)]
        whole = phrase.each and bool(phrase.summaries or any(isinstance(one, Extreme) for one in phrase.constraints))
        if clause is None or whole or (named and not (compared and len(named) < 2)):
            constraints = phrase.constraints
            done = {state for deed in self.deeds if deed.result is not None for state in deed.tool.becomes}
            own = tuple(one for one in constraints if not (isinstance(one, Mention) and one.kind == "value" and stem(one.text) in done))
            constraints = own if own or clause is None else self._inherited(clause)
        else:
            base = self._inherited(clause, self._guesses(goal, clause), True)
            if any(isinstance(one, Extreme) for one in phrase.constraints):
                base = tuple(one for one in base if not isinstance(one, Extreme))
            seen = {(type(one), getattr(one, "value", None)) for one in base if not isinstance(one, Extreme)}
            constraints = (*base, *(one for one in phrase.constraints if (type(one), getattr(one, "value", None)) not in seen))
        constraints = (*constraints, *self._referred(phrase, constraints))
        around = residual(clause) if clause else {}
        return Wish(
            words=goal.words, around=merge(around, {word: 0.6 for word in residual(phrase)}), head=clause.head if clause else {},
            kind=goal.kind, numeric=goal.numeric, constraints=constraints,
            flags=merge(phrase.content, {} if named else clause.content if clause else {}), negated=phrase.negated,
            ranked=any(isinstance(one, Extreme) for one in phrase.constraints),
            added=adds_up(phrase.text) or bool(clause and adds_up(clause.text)), own=phrase.summaries,
            summaries=clause.summaries if clause else frozenset(),
        ), clause

    def _referred(self, phrase: Clause, constraints: Sequence[Constraint]) -> list[Mention]:
        """What "that chapter" stands for: the last value that was called so."""
        if any(is_strong(one) for one in constraints):
            return []
        for at, token in enumerate(phrase.tokens[:-1]):
            noun = phrase.tokens[at + 1].stem
            if token.low not in ("that", "this", "same"):
                continue
            fact = next((one for one in reversed(self.runner.facts) if stem(one.name.lower()) == noun and isinstance(one.value, str)
                         and not one.key), None)
            if fact is not None:
                return [Mention(kind="name", text=fact.value, value=fact.value, context={noun: 1.0}, at=at)]
        return []

    def _guesses(self, goal: Goal, clause: Clause) -> tuple[Constraint, ...]:
        """Values in a question that are guesses at the answer, not conditions ("is it a novel?")."""
        if goal.kind != "string" or clause.comparative is not None:
            return ()
        return tuple(
            one for one in clause.mentions if one.kind == "value" and any(
                one.value in parameter.enum and self.box.touch(goal.words, parameter.names) > 0.75
                for tool in self.box.tools for parameter in tool.parameters))

    def _inherited(self, clause: Clause, without: Sequence[Constraint] = (),
                   without_compare: bool = False) -> tuple[Constraint, ...]:
        """The constraints of a clause and, when it only refers to something, those of the clauses it refers to.

        What a condition compares says nothing about a goal: `without_compare` leaves it out.
        """
        if clause.position in self.acted:
            return self._fed_constraints(clause)
        constraints = [one for one in clause.constraints if one not in without]
        if without_compare and clause in self.conditions:
            constraints = [one for one in constraints if isinstance(one, Mention) and one.kind != "value"
                           and one not in self.checked]
        before = [one for one in self.clauses if one.position < clause.position]
        while before and not any(is_strong(one) for one in constraints):
            previous = before.pop()
            if previous.position in self.acted:
                constraints += [one for one in self._fed_constraints(previous) if len(self.acted[previous.position]) > 1]
                break
            ranked = any(isinstance(one, Extreme) for one in constraints)
            if ranked and not any(one.context or one.degrees for one in constraints if isinstance(one, Extreme)):
                lent = [one for one in previous.constraints if isinstance(one, Extreme)]
                constraints = [replace(one, context=lent[0].context, degrees=lent[0].degrees) if isinstance(one, Extreme) and lent
                               else one for one in constraints]
            constraints += [one for one in previous.constraints if not (ranked and isinstance(one, Extreme))]
        return tuple(constraints)

    def _fed_constraints(self, clause: Clause) -> tuple[Constraint, ...]:
        """Of an order, the constraints that chose the rows it was about, when there were several."""
        deeds = self.acted[clause.position]
        if len(deeds) < 2:
            return ()
        given = {str(value) for deed in deeds for value in deed.arguments.values()}
        return tuple(one for one in deeds[0].constraints if not isinstance(one, Mention) or str(one.value) not in given)

    def _comparative_before(self, clause: Clause | None) -> Extreme | None:
        if clause is None or any(is_strong(one) for one in clause.constraints):
            return None
        earlier = [one for one in self.clauses if one.position < clause.position and one.kind == "ask"]
        return earlier[-1].comparative if earlier else None

    def _pair(self, constraints: Sequence[Constraint], comparative: Extreme | None) -> tuple[Mention, Mention] | None:
        names = [one for one in constraints if isinstance(one, Mention) and one.kind in ("name", "value")]
        for first, second in zip(names, names[1:], strict=False):
            if first.kind == second.kind and (len(names) == 2 or abs(first.at - second.at) <= 3) and self._alike(first, second):
                return first, second
        return None

    def _alike(self, first: Mention, second: Mention) -> bool:
        """Whether two mentions would go to the same place."""
        best = []
        for mention in (first, second):
            scored = [(score, tool.name, number) for tool in self.box.reading()
                      for number, parameter in enumerate(tool.parameters)
                      if (score := self.places.fit(replace(mention, context={}), parameter, tool)) is not None]
            best.append(max(scored, default=None))
        return best[0] is not None and best[0] == best[1]

    def _combined(self, goal: Goal, wish: Wish, pair: tuple[Mention, Mention], comparative: Extreme | None,
                  clause: Clause | None) -> Thinking:
        difference = "difference" in wish.own or ("difference" in wish.summaries and "sum" not in wish.own)
        if goal.numeric:
            words = goal.words
            if difference or comparative is None:
                first, second = yield from self._measures(pair, wish.constraints, comparative, words, clause)
                if first is None or second is None:
                    return None
                return abs(first - second) if difference else first + second
            return None
        if comparative is None:
            return None
        first, second = yield from self._measures(pair, wish.constraints, comparative, {}, clause)
        if first is None or second is None:
            return None
        return str((pair[0] if (first > second) == self.upward else pair[1]).value)

    def _measures(self, pair: tuple[Mention, Mention], constraints: Sequence[Constraint], comparative: Extreme | None, words,
                  clause: Clause | None) -> Generator[Step, Observation, tuple[Json, Json]]:
        """What two things measure, in the same way."""
        options = []
        self.upward = comparative.more if comparative is not None else True
        rest = tuple(one for one in constraints if one not in pair and not isinstance(one, Extreme))
        known = words if words and any(self.box.weight(word) and self.box.near(word) for word in words) else {}
        contexts = [(known, None)] if known else []
        if comparative is not None:
            contexts += [({word: 1.0}, degree.more) for degree in comparative.degrees for word in sorted(degree.of)
                         if any(score >= 1.0 for _, score in self.box.near(word))]
            if comparative.context and not known:
                contexts.append((comparative.context, None))
        for context, more in contexts:
            wish = Wish(words=context, around=merge(residual(clause) if clause else {}, comparative.context if comparative else {}),
                        head={}, kind="number", numeric=True, constraints=(*rest, pair[0]), summaries=frozenset({"count"}),
                        own=frozenset())
            found = readings(wish, self.planner)
            if found:
                bonus = 0.0 if more is None else -0.1
                options.append((found[0].score + bonus, len(options), wish, more))
        if not options:
            return None, None
        _, _, wish, more = max(options, key=lambda option: (option[0], -option[1]))
        if more is not None and comparative is not None and comparative.degrees:
            self.upward = more
        values = []
        for one in pair:
            value = yield from self._first(replace(wish, constraints=(*rest, one)))
            values.append(value if isinstance(value, int | float) else None)
        return values[0], values[1]

    def _degree_words(self, compare: Compare):
        known = [word for degree in compare.degrees for word in sorted(degree.of)
                 if any(score >= 0.8 for _, score in self.box.near(word))]
        return {word: 1.0 for word in known[:1]}

    def _first(self, wish: Wish, goal: Goal | None = None, clause: Clause | None = None) -> Thinking:
        """The value of the likeliest reading that leads to one."""
        zero: Json = None
        dead: list[Reading] = []
        for _ in range(_TRIES):
            found = [one for one in readings(wish, self.planner) if one.query not in [other.query for other in dead]]
            seen = self._seen(wish, goal, clause) if goal is not None else []
            if seen and (not found or seen[0][0] >= found[0].score):
                return seen[0][1]
            if not found:
                return zero
            reading = found[0]
            try:
                value = yield from self._take(reading, wish)
            except SetbackError as setback:
                fresh = set(setback.blame) - self.places.banned
                if fresh:
                    self.places.ban(fresh)
                else:
                    dead.append(reading)
                continue
            if value not in (None, [], 0) or (value == 0 and not reading.query.blame):
                return value
            zero = value if zero is None else zero
            doubtful = [entry for entry in reading.query.blame if entry not in self.places.banned]
            if not doubtful or reading.mode != "count":
                return value
            # Nothing at all may be true, or a name went to the wrong place: look once at the next way.
            self.places.ban(set(doubtful))
            others = readings(wish, self.planner)
            self.places.unban(set(doubtful))
            if not others or others[0].score < reading.score - 0.6 or others[0].query == reading.query:
                return value
            try:
                other = yield from self._take(others[0], wish)
            except SetbackError:
                return value
            return other or value
        return zero

    def _take(self, reading: Reading, wish: Wish) -> Thinking:
        """Carries a reading out."""
        query, place = reading.query, reading.place
        if reading.mode == "count" and not query.keeps and query.order is None and not query.wanted:
            rows = yield from self.runner.rows(query, whole=True)
            totals = [row.get("total") for row in rows]
            if rows and all(isinstance(total, int) for total in totals):
                return sum(totals)
        only = 1 if reading.mode == "value" else None
        rows = yield from self.runner.rows(query, only=only, whole=reading.whole)
        if reading.mode == "count":
            return len(rows)
        if not rows and query.blame:
            raise SetbackError(query.blame, "nothing_found", "")
        if place is not None and place.detail is not None:
            rows = yield from self.runner.detailed(rows[:1] if reading.mode == "value" else rows, place.detail)
        if len(rows) == 1 or (rows and reading.mode == "value"):
            self.runner.note(query.tool, rows[0], query.marks)
        values = [value for value in (value_at(row, place) for row in rows) if value is not None]
        if reading.mode == "list":
            return list(dict.fromkeys(value if not isinstance(value, list) else text_of(value) for value in values))
        if not values:
            return None
        if reading.mode == "value":
            return values[0]
        numbers = [value for value in values if isinstance(value, int | float)]
        return sum(numbers) if reading.mode == "sum" else sum(numbers) / len(numbers) if numbers else None

    def _seen(self, wish: Wish, goal: Goal, clause: Clause | None) -> list[tuple[float, Json]]:
        """Values of deeds and of rows that orders were about, with scores like those of readings."""
        found: list[tuple[float, int, Json]] = []
        names = [one for one in wish.constraints if isinstance(one, Mention) and one.kind in ("name", "value")]
        done = [deed for deed in self.deeds if deed.result is not None]
        for age, deed in enumerate(reversed(done)):
            spoken = {one.text for one in deed.constraints if isinstance(one, Mention)}
            named = sum(0.5 if one.text in spoken else -1.0 for one in names)
            base = 0.5 - 0.25 * age + named
            for name, value in {**deed.arguments, **deed.result}.items():
                one = next((field for field in deed.tool.fields if field.name == name), None) or deed.tool.parameter(name)
                if one is None or isinstance(value, list | dict) or (wish.numeric and not isinstance(value, int | float)):
                    continue
                if goal.kind == "array":
                    continue
                recall = self.box.match(wish.words, merge(one.words, {w: 0.45 * v for w, v in deed.tool.nouns.items()}))
                precision = self.box.match(one.names, merge(wish.words, wish.around))
                score = 0.6 * recall + 0.3 * precision
                keyed = one.role == "id" if isinstance(one, Parameter) else one.key
                if keyed and not IDENTITY_ASKED & (wish.words.keys() | wish.head.keys()):
                    score -= 0.25
                if max(recall, precision) > 0.4:
                    found.append((2 * score + base + self.chance("deed", deed.tool.name, name), -age, value))
        batch = self.acted.get(clause.position) if clause else None
        if batch is None and done:
            batch = self.acted.get(done[-1].clause.position)
        if wish.numeric and batch and (len(batch) > 1 or batch[0].clause.each) and not wish.own & {"sum", "mean"}:
            made = [deed for deed in batch if deed.result is not None]
            noun = self.box.match(wish.words, merge(made[0].tool.words, made[0].tool.nouns)) if made and wish.words else 0.5
            explained = sum(0.9 for one in wish.constraints if one in batch[0].constraints)
            found.append((0.6 + 1.2 * noun + explained + 0.2 * ("count" in wish.own | wish.summaries), 0, len(made)))
        if not names:
            for age, fact in enumerate(reversed(self.runner.facts[-40:])):
                tool = next((one for one in self.box.tools if one.name == fact.tool), None)
                one = next((field for field in tool.fields if field.name == fact.name), None) if tool else None
                if one is None or tool.writes or (wish.numeric and not isinstance(fact.value, int | float)) or goal.kind == "array":
                    continue
                recall = self.box.match(wish.words, merge(one.words, {w: 0.45 * v for w, v in tool.nouns.items()}))
                precision = self.box.match(one.names, merge(wish.words, wish.around))
                if max(recall, precision) > 0.5:
                    found.append((2 * (0.6 * recall + 0.3 * precision) + 0.25 - 0.01 * age, -age, fact.value))
        return [(score, value) for score, _, value in sorted(found, key=lambda entry: (-entry[0], -entry[1]))]


def _complete(order: Order, spare: bool) -> bool:
    """Whether everything named goes into the call and nothing it needs is missing: an order without a telling verb."""
    names = [one for one in order.plan.left if is_strong(one)]
    missing = [one for one in order.plan.missing if one.role != "number"]
    told = len(order.plan.query.given) + len(order.plan.query.fed)
    return not missing and not names and told >= 2 and (spare or order.noun > 0.5)


def _plural(clause: Clause, constraints: Sequence[Constraint]) -> bool:
    """Whether an order is about several things: a superlative with a number, or "both"."""
    return any(isinstance(one, Extreme) and one.count > 1 for one in constraints) or any(
        token.low == "both" for token in clause.tokens)


def _same_slots(one: Plan, other: Plan) -> bool:
    return set(one.query.given) == set(other.query.given) and set(one.query.fed) == set(other.query.fed)
