"""Compare the figures that a summary gives for several values of a filter."""

from __future__ import annotations

import random

from agent_world.tasks.catalogue import Output, outputs, subject
from agent_world.tasks.graph import required
from agent_world.tasks.phrases import Condition, listed, quote
from agent_world.tasks.programs.draft import Bench, Draft
from agent_world.tasks.programs.parts import column_sql
from agent_world.tasks.programs.scanning import as_value
from agent_world.tasks.saying import Given, conditions, field_name, said, schema_of, with_words
from agent_world.tasks.values import value_for

_SQL = {"mean": "round(avg({}), 2)", "total": "sum({})"}


def leading(bench: Bench, rng: random.Random) -> Draft | None:
    """For which of a few values of a filter a figure is highest or lowest, and how much it is there."""
    catalogue = bench.catalogue
    found = [tool for tool in catalogue.reads if _figures(tool) and _filters(bench, tool)]
    if not found:
        return None
    tool = rng.choices(found, [bench.weigh(item.name) for item in found])[0]
    parameter = rng.choice(_filters(bench, tool))
    table, figure = catalogue.database.table(subject(tool) or ""), rng.choice(_figures(tool))
    values: list[str] = []
    for _ in range(12):
        value = value_for(catalogue, tool, parameter, {}, rng)
        if isinstance(value, str) and value not in values:
            values.append(value)
    count = rng.choice((2, 3, 3, 4))
    values = values[:count]
    if len(values) < count:
        return None
    column = column_sql(
        catalogue, table.name, Output(array=None, field=parameter, meaning=as_value(tool.inputs[parameter]))
    )
    measured = f't."{figure.meaning.column}"'
    expression = "count(*)" if figure.meaning.kind == "count" else _SQL[_kind(figure)].format(measured)
    statement = f'SELECT {expression} AS figure FROM "{table.name}" t WHERE {column} = ?'
    results = [catalogue.facts.db.execute(statement, (value,)).fetchone()[0] for value in values]
    if any(result is None for result in results):
        return None
    highest = rng.random() < 0.6
    ordered = sorted(results)
    if ordered[-1 if highest else 0] == ordered[-2 if highest else 1]:
        return None
    words = f"number of {table.plural}" if figure.meaning.kind == "count" else said(tool, figure)
    by = _filter_name(bench, tool, parameter)
    end = "highest" if highest else "lowest"
    most = f"{end} {words}"
    level = rng.choice((0, 1, 1, 2))
    shown = listed((quote(value) for value in values), "or")
    among = f"the {table.plural} whose {by} is {shown}"
    of = "" if figure.meaning.kind == "count" else f" of {table.plural}"
    text = {
        0: f"Look up the {words}{of} for each {by} of {listed(quote(value) for value in values)}. "
        f"Report the {by} with the {end} and that figure.",
        1: f"Which {by} has the {most}{of}: {shown}? Give the {by} and that figure.",
        2: f"I compare {among}. For which {by} is the {words} {end}, and what is it there?",
    }[level]
    name, number = field_name(by), field_name(words)
    if name == number:
        return None
    fields = {
        name: {"type": "string", "description": f"the {by} with the {most}"},
        number: with_words(schema_of(catalogue, tool, figure), f"the {words} there"),
    }
    return Draft(
        pattern="leading", text=text, level=level, functions=[],
        body=[
            "best = None",
            f"for value in {values!r}:",
            f"    figure = call({tool.name!r}, {{{parameter!r}: value}})[{figure.field!r}]",
            f"    if best is None or figure {'>' if highest else '<'} best[1]:",
            "        best = (value, figure)",
            f"return {{{name!r}: best[0], {number!r}: best[1]}}",
        ],
        logic=[
            f"found = [(value, db.execute({statement!r}, (value,)).fetchone()['figure']) for value in {values!r}]",
            f"best = {'max' if highest else 'min'}(found, key=lambda pair: pair[1])",
            f"own = {{{name!r}: best[0], {number!r}: best[1]}}",
        ],
        fields=fields, branches=1, loops=1, aggregates=count,
    )  # fmt: skip


def _figures(tool) -> list[Output]:
    found = outputs(tool)
    if any(item.array for item in found):
        return []
    own = subject(tool)
    return [
        item for item in found
        if item.meaning.table == own
        and (item.meaning.kind == "count" or (item.meaning.kind == "aggregate" and _kind(item)))
    ]  # fmt: skip


def _kind(output: Output) -> str | None:
    return next((kind for kind in _SQL if kind in output.field.split("_")), None)


def _filters(bench: Bench, tool) -> list[str]:
    own = subject(tool)
    return [
        name for name, meaning in tool.inputs.items()
        if meaning.kind == "filter" and set(required(tool)) <= {name} and own and tool.workflow is None
        and column_sql(bench.catalogue, own, Output(array=None, field=name, meaning=as_value(meaning)))
    ]  # fmt: skip


def _filter_name(bench: Bench, tool, parameter: str) -> str:
    given = {parameter: Given(value="", meaning=tool.inputs[parameter])}
    condition: Condition = conditions(bench.catalogue, tool, given)[0]
    return condition.words
