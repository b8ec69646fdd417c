"""Two levels of order among themes: clusters by text, merged into categories by three different annotators.

The number of clusters and categories follows the number of themes and is capped as in the paper (method.md 4).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from agent_world.discovery.labels import labels_of
from agent_world.discovery.topics import Side, Topic, all_stems_of, stems_of
from agent_world.discovery.word_space import WordSpace, space_of
from agent_world.errors import AgentWorldError
from agent_world.identity import rng, slug

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

MAX_CLUSTERS = 50
MAX_CATEGORIES = 20
_REPRESENTATIVES = 3
_TIE_BREAK = 0.3
"""How much the words of two clusters weigh beside one annotator's verdict on them."""

Linkage = Literal["average", "complete", "ward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A second-level label: keys of themes, and some of them drawn at random to stand for it."""

    cluster_id: str
    label: str
    members: tuple[str, ...]
    representatives: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A first-level label over clusters; its id is the label as a slug."""

    category_id: str
    label: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """How one pass looks at the themes: from which side, by which linkage."""

    name: str
    features: Side
    linkage: Linkage


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPass:
    """What one annotator made of the clusters: the group of each."""

    annotator: Annotator
    groups: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """Clusters, categories, the category of each key, and how far the annotators agree.

    `agreement` is the mean pairwise adjusted Rand index: 1 for the same partition, about 0 for chance.
    """

    clusters: tuple[Cluster, ...]
    categories: tuple[Category, ...]
    assignment: Mapping[str, str]
    agreement: float
    passes: tuple[AnnotatorPass, ...]


class IdenticalPassesError(AgentWorldError):
    """Two annotators look at the same features by the same linkage: their agreement would say nothing."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)
        self.first, self.second = first, second

    def __str__(self) -> str:
        return f"annotators {self.first} and {self.second} work alike; give them different features or linkage"


ANNOTATORS = (
    Annotator(name="reader", features="prose", linkage="average"),
    Annotator(name="cataloguer", features="entities", linkage="ward"),
    Annotator(name="engineer", features="tools", linkage="complete"),
)


def sizes(themes: int) -> tuple[int, int]:
    """How many clusters and categories `themes` themes get."""
    categories = min(MAX_CATEGORIES, max(1, round(1.5 * math.sqrt(themes))), themes)
    return min(MAX_CLUSTERS, max(categories, round(themes / 2.5)), themes), categories


def build_taxonomy(
    topics: Sequence[Topic],
    *,
    space: WordSpace | None = None,
    annotators: Sequence[Annotator] = ANNOTATORS,
    seed: int = 0,
) -> Taxonomy:
    """The taxonomy of these topics (distinct keys). The order in which they come does not matter.

    `space` says what words have to do with each other; without it the topics themselves do.

    Raises:
        IdenticalPassesError: two annotators are configured alike.
    """
    for first, second in combinations(annotators, 2):
        if (first.features, first.linkage) == (second.features, second.linkage):
            raise IdenticalPassesError(first.name, second.name)
    topics = sorted(topics, key=lambda topic: topic.key)
    if not topics:
        return Taxonomy(clusters=(), categories=(), assignment={}, agreement=1.0, passes=())
    words = [all_stems_of(topic) for topic in topics]
    space = space or space_of(words)
    cluster_count, category_count = sizes(len(topics))
    places = _places(words, space)
    members = _by_group(_cut(places, cluster_count, "ward"))
    partitions = [
        _cut(
            _means(_places([stems_of(topic, annotator.features) for topic in topics], space), members),
            category_count,
            annotator.linkage,
        )
        for annotator in annotators
    ]
    merged = _by_group(_merge(partitions, _means(places, members), category_count))
    groups = [[topics[position] for position in positions] for positions in members]
    clusters = tuple(
        _cluster(f"c{number:02d}", label, [topic.key for topic in group], seed)
        for number, (group, label) in enumerate(zip(groups, labels_of(groups, topics, space), strict=True), 1)
    )
    labels = labels_of([[topic for number in numbers for topic in groups[number]] for numbers in merged], topics, space)
    categories = tuple(
        Category(
            category_id=slug(label.replace(" and ", " ")),
            label=label,
            clusters=tuple(clusters[number].cluster_id for number in numbers),
        )
        for numbers, label in zip(merged, labels, strict=True)
    )
    category_of = {cluster: category.category_id for category in categories for cluster in category.clusters}
    identities = [cluster.cluster_id for cluster in clusters]
    return Taxonomy(
        clusters=clusters,
        categories=categories,
        passes=tuple(
            AnnotatorPass(annotator=annotator, groups=dict(zip(identities, partition, strict=True)))
            for annotator, partition in zip(annotators, partitions, strict=True)
        ),
        agreement=round(_agreement(partitions), 4),
        assignment={key: category_of[cluster.cluster_id] for cluster in clusters for key in cluster.members},
    )


def figure(taxonomy: Taxonomy) -> Figure:
    """Categories by size, each bar split into its clusters."""
    from matplotlib.figure import Figure

    sizes_of = {cluster.cluster_id: len(cluster.members) for cluster in taxonomy.clusters}
    ordered = sorted(taxonomy.categories, key=lambda c: (sum(sizes_of[x] for x in c.clusters), c.label))
    drawing = Figure(figsize=(9, 0.4 * len(ordered) + 1.2), layout="constrained")
    axes = drawing.subplots()
    for row, category in enumerate(ordered):
        left = 0
        for cluster in sorted(category.clusters, key=lambda x: (-sizes_of[x], x)):
            axes.barh(row, sizes_of[cluster], left=left, color="#4c78a8", edgecolor="white")
            left += sizes_of[cluster]
    axes.set_yticks(range(len(ordered)), [category.label for category in ordered])
    axes.set_xlabel("themes")
    axes.set_title(
        f"{len(ordered)} categories over {len(taxonomy.clusters)} clusters "
        f"(annotators agree at {taxonomy.agreement:.2f})"
    )
    axes.spines[["top", "right"]].set_visible(False)
    return drawing


def _cluster(cluster_id: str, label: str, keys: Sequence[str], seed: int) -> Cluster:
    drawn = rng("representatives", seed, cluster_id).sample(list(keys), min(_REPRESENTATIVES, len(keys)))
    return Cluster(cluster_id=cluster_id, label=label, members=tuple(keys), representatives=tuple(sorted(drawn)))


def _places(words: Sequence[Sequence[str]], space: WordSpace) -> np.ndarray:
    import numpy as np

    return np.stack([space.place(one) for one in words])


def _by_group(groups: Sequence[int]) -> list[list[int]]:
    """The positions of each group, in the order in which groups first appear."""
    found: dict[int, list[int]] = defaultdict(list)
    for position, group in enumerate(groups):
        found[group].append(position)
    return list(found.values())


def _means(matrix: np.ndarray, members: Sequence[Sequence[int]]) -> np.ndarray:
    import numpy as np

    return np.stack([matrix[list(positions)].mean(axis=0) for positions in members])


def _cut(matrix: np.ndarray, groups: int, linkage: Linkage) -> list[int]:
    """Group numbers from 1, in the order in which groups first appear."""
    return _grouped(_distances(_unit(matrix), linkage), len(matrix), groups, linkage)


def _merge(partitions: Sequence[Sequence[int]], words: np.ndarray, groups: int) -> list[int]:
    """The partition that the annotators come closest to agreeing on, by Ward's linkage, which leaves no catch-all.

    Each annotator's verdict is a place of its own; where verdicts leave a choice, the words decide.
    """
    import numpy as np

    verdicts = [np.eye(max(partition) + 1)[list(partition)] for partition in partitions]
    seen = np.hstack([*verdicts, _TIE_BREAK * _unit(words)])
    return _grouped(_distances(seen, "ward"), len(seen), groups, "ward")


def _grouped(distances: np.ndarray, count: int, groups: int, linkage: Linkage) -> list[int]:
    from scipy.cluster.hierarchy import fcluster
    from scipy.cluster.hierarchy import linkage as link

    if count <= groups:
        return list(range(1, count + 1))
    numbers: dict[int, int] = {}
    cut = fcluster(link(distances, linkage), groups, "maxclust").tolist()
    return [numbers.setdefault(group, len(numbers) + 1) for group in cut]


def _unit(matrix: np.ndarray) -> np.ndarray:
    import numpy as np

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths == 0, 1, lengths)


def _distances(matrix: np.ndarray, linkage: Linkage) -> np.ndarray:
    """Pairwise distances, for Ward's linkage Euclidean ones; else squared and halved, which is the cosine distance.

    Rounded, so that the last bits of a sum never decide.
    """
    import numpy as np
    from scipy.spatial.distance import pdist

    return np.round(pdist(matrix) if linkage == "ward" else pdist(matrix, "sqeuclidean") / 2, 6)


def _agreement(partitions: Sequence[Sequence[int]]) -> float:
    from sklearn.metrics import adjusted_rand_score

    pairs = [adjusted_rand_score(first, second) for first, second in combinations(partitions, 2)]
    return float(sum(pairs) / len(pairs)) if pairs else 1.0
