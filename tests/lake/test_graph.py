"""The graph answers as networkx does, grown edge by edge or built at once."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import networkx as nx
import pyarrow as pa
import pytest

from agent_world.lake.graph import Graph, Link

NO_VERSIONS = pa.table({"version_id": pa.array([], pa.string()), "kind": pa.array([], pa.string())})


def made(seed: int) -> tuple[list[str], list[Link]]:
    """Versions, some of them with very many children, and edges of three roles, some of them double."""
    source = Random(seed)
    names = [f"v{number:03}" for number in range(200)]
    source.shuffle(names)
    links = []
    for place, name in enumerate(names):
        for _ in range(min(place, source.choice((0, 1, 2, 3, 12)))):
            parent = names[0] if source.random() < 0.2 else names[source.randrange(place)]
            links.append(Link(name, parent, source.choice(("a", "b", "tool"))))
    return names, list(dict.fromkeys(links))


def versions_of(names: list[str]) -> pa.Table:
    return pa.table({"version_id": pa.array(names, pa.string()), "kind": [f"kind-{name[-1]}" for name in names]})


def edges_of(links: list[Link]) -> pa.Table:
    return pa.table({name: pa.array([getattr(link, name) for link in links], pa.string()) for name in Link._fields})


def reference(links: list[Link], names: list[str], without: tuple[str, ...] = ()) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(link[:2] for link in links if link.role not in without)
    return graph


@pytest.fixture(params=range(4))
def case(request: pytest.FixtureRequest) -> tuple[list[str], list[Link], Graph]:
    names, links = made(request.param)
    if request.param % 2:
        return names, links, Graph.of(versions_of(names), edges_of(links))
    grown, source = Graph.of(NO_VERSIONS, edges_of([])), Random(request.param)
    for start in range(0, len(names), 23):
        here = names[start : start + 23]
        own = [link for link in links if link.child in here]
        again = source.sample(links[: links.index(own[0])], min(9, links.index(own[0]))) if own else []
        grown = grown.grown(versions_of([*names[:start][-5:], *here]), edges_of([*again, *own, *own[:3]]))
    return names, links, grown


def test_walks_reach_what_networkx_reaches_at_the_same_distance(case):
    names, links, graph = case
    for without in ((), ("tool",), ("tool", "unheard of")):
        down = reference(links, names, without).reverse()
        for start in names[::7]:
            for up, other in ((True, down.reverse()), (False, down)):
                far = nx.single_source_shortest_path_length(other, start)
                walk = graph.walk(start, up=up, limit=1000, without=without)
                assert {start: 0} | dict(walk.hops) == far and not walk.truncated
                assert [hop.distance for hop in walk.hops] == sorted(hop.distance for hop in walk.hops)
                near = graph.walk(start, up=up, depth=2, limit=1000, without=without)
                assert {start: 0} | dict(near.hops) == {v: d for v, d in far.items() if d <= 2}
                assert near.truncated == (max(far.values()) > 2)
                cut = graph.walk(start, up=up, limit=5, without=without)
                assert cut.hops == walk.hops[:5] and cut.truncated == (len(far) > 6)


def test_chains_are_shortest_and_are_chains(case):
    names, links, graph = case
    other = reference(links, names)
    pairs = {link[:2] for link in links}
    lengths = dict(nx.all_pairs_shortest_path_length(other))
    found = 0
    for start in names[::9]:
        for end in names[::4]:
            chain = graph.chain(start, end, limit=1000).versions
            if end not in lengths[start]:
                assert chain is None
                continue
            found += 1
            assert chain is not None and (chain[0], chain[-1]) == (start, end)
            assert len(chain) - 1 == lengths[start][end] and set(pairwise(chain)) <= pairs
    assert found > 50


def test_links_and_neighbours_are_the_edges(case):
    names, links, graph = case
    some = set(names[::3])
    assert graph.links(some) == sorted(link for link in links if link.child in some and link.parent in some)
    for name in names[::5]:
        assert graph.neighbours(name, up=True) == sorted(link for link in links if link.child == name)
        assert graph.neighbours(name, up=False) == sorted(link for link in links if link.parent == name)
        assert graph.kind(name) == f"kind-{name[-1]}"


def test_an_end_that_no_version_is_known_of_is_there_without_a_kind():
    link = Link("b", "before", "theme")
    at_once = Graph.of(versions_of(["a", "b"]), edges_of([link]))
    grown = Graph.of(versions_of(["a"]), edges_of([])).grown(versions_of(["b"]), edges_of([link]))
    for graph in (at_once, grown):
        assert (graph.kind("before"), graph.kind("b")) == ("", "kind-b")
        assert graph.walk("b", up=True, limit=9).hops == [("before", 1)] and "c" not in graph
    assert grown.grown(versions_of(["b"]), edges_of([link])) is grown
