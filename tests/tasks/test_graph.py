from dataclasses import replace
from itertools import permutations

from agent_world.tasks.graph import tool_graph


def test_the_graph_is_complete(environment):
    names = [tool.name for tool in environment.tools]
    assert {(edge.source, edge.target) for edge in tool_graph(environment).edges} == set(permutations(names, 2))


def test_an_id_that_only_a_call_mints_is_a_strong_directed_edge(environment):
    graph = tool_graph(environment)
    edge = graph.edge("lend_book", "return_book")
    assert edge.weight == 3
    evidence = edge.evidence[0]
    assert (evidence.output, evidence.input, evidence.table, evidence.via) == ("loan_id", "loan_id", "loans", "minted")
    assert graph.edge("return_book", "lend_book").weight < 3
    assert graph.has_strong_predecessor("return_book")
    assert not graph.has_strong_predecessor("lend_book")


def test_an_id_that_the_records_hold_as_well_is_weak_both_ways(environment):
    graph = tool_graph(environment)
    there, back = graph.edge("search_books", "get_book"), graph.edge("get_book", "search_books")
    assert there.weight == back.weight == 2
    assert ("book_id", "key") in {(item.input, item.via) for item in there.evidence}


def test_tools_without_a_common_column_are_independent(environment):
    edge = tool_graph(environment).edge("find_member", "count_books_by_genre")
    assert (edge.weight, edge.evidence) == (1, ())


def test_an_id_is_not_strictly_needed_once_the_table_holds_rows(environment):
    tables = tuple(replace(t, rows=4) if t.name == "loans" else t for t in environment.database.tables)
    filled = replace(environment, database=replace(environment.database, tables=tables))
    assert tool_graph(filled).edge("lend_book", "return_book").weight == 2
