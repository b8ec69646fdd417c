"""Two levels of order among themes: clusters by text, merged into categories by three different annotators.

The number of clusters and categories follows the number of themes and is capped as in the paper (method.md 4).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from agent_world.discovery.background import COMMON_SHARE, Background
from agent_world.discovery.model import Theme, environment_key
from agent_world.discovery.text import stem, stems, words_of
from agent_world.errors import AgentWorldError
from agent_world.identity import rng

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

MAX_CLUSTERS = 50
MAX_CATEGORIES = 20
_REPRESENTATIVES = 3
_READ = 1_500  # characters of a description: what it is about stands first
_LATENT = 24
_COMMON_SHARE = 0.2
_TIE_BREAK = 0.1
_LABEL_WORDS = 8

Linkage = Literal["average", "complete", "ward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """What the taxonomy reads of a theme: key, a text that says first what it is about, entities and actions."""

    key: str
    text: str
    nouns: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    title: str = ""


def topic_of(theme: Theme) -> Topic:
    """The topic of a theme, under its environment key."""
    return Topic(
        key=environment_key(theme),
        title=theme.title,
        text=f"{theme.title} {theme.description}",
        nouns=theme.nouns,
        verbs=theme.verbs,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A second-level label: keys of themes, and some of them drawn at random to stand for it."""

    cluster_id: str
    label: str
    members: tuple[str, ...]
    representatives: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A first-level label over clusters."""

    category_id: str
    label: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotator:
    """How one pass looks at the themes: which features, which linkage."""

    name: str
    features: Literal["words", "spelling", "entities"]
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
    Annotator(name="reader", features="words", linkage="ward"),
    Annotator(name="cataloguer", features="entities", linkage="complete"),
    Annotator(name="speller", features="spelling", linkage="average"),
)


def sizes(themes: int) -> tuple[int, int]:
    """How many clusters and categories `themes` themes get."""
    categories = min(MAX_CATEGORIES, max(1, round(1.25 * math.sqrt(themes))), themes)
    return min(MAX_CLUSTERS, max(categories, round(themes / 2.5)), themes), categories


def build_taxonomy(
    topics: Sequence[Topic],
    *,
    background: Background | None = None,
    annotators: Sequence[Annotator] = ANNOTATORS,
    seed: int = 0,
) -> Taxonomy:
    """The taxonomy of these topics (distinct keys). The order in which they come does not matter.

    `background` says which words are common among themes at large; without it the topics themselves do.

    Raises:
        IdenticalPassesError: two annotators are configured alike.
    """
    for first, second in combinations(annotators, 2):
        if (first.features, first.linkage) == (second.features, second.linkage):
            raise IdenticalPassesError(first.name, second.name)
    topics = sorted(topics, key=lambda topic: topic.key)
    if not topics:
        return Taxonomy(clusters=(), categories=(), assignment={}, agreement=1.0, passes=())
    keys = [topic.key for topic in topics]
    cluster_count, category_count = sizes(len(topics))
    matrices = {
        name: _MATRICES[name](topics, background) for name in sorted({a.features for a in annotators} | {"words"})
    }
    of_theme = _cut(matrices["words"], cluster_count, "ward")
    members: dict[int, list[int]] = defaultdict(list)
    for position, cluster in enumerate(of_theme):
        members[cluster].append(position)
    passes = tuple(
        AnnotatorPass(
            annotator=annotator,
            groups=dict(
                zip(
                    map(_cluster_id, members),
                    _cut(_means(matrices[annotator.features], members), category_count, annotator.linkage),
                    strict=True,
                )
            ),
        )
        for annotator in annotators
    )
    partitions = [list(one.groups.values()) for one in passes]
    merged = _merge(partitions, _means(matrices["words"], members), category_count)
    taken: Counter[str] = Counter()
    clusters = tuple(
        Cluster(
            cluster_id=_cluster_id(number),
            label=_label([topics[i] for i in positions], topics, taken),
            members=tuple(keys[i] for i in positions),
            representatives=tuple(
                sorted(
                    rng("representatives", seed, _cluster_id(number)).sample(
                        [keys[i] for i in positions], min(_REPRESENTATIVES, len(positions))
                    )
                )
            ),
        )
        for number, positions in members.items()
    )
    by_category: dict[int, list[Cluster]] = defaultdict(list)
    for cluster, category in zip(clusters, merged, strict=True):
        by_category[category].append(cluster)
    named = dict(zip(keys, topics, strict=True))
    taken = Counter()
    categories = tuple(
        Category(
            category_id=f"k{number:02d}",
            clusters=tuple(cluster.cluster_id for cluster in group),
            label=_label([named[key] for cluster in group for key in cluster.members], topics, taken),
        )
        for number, group in by_category.items()
    )
    category_of = {cluster: category.category_id for category in categories for cluster in category.clusters}
    return Taxonomy(
        clusters=clusters,
        categories=categories,
        passes=passes,
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


def _cluster_id(number: int) -> str:
    return f"c{number:02d}"


def _word_matrix(topics: Sequence[Topic], background: Background | None) -> np.ndarray:
    """What a reader sees: the first words of the text, and the entities."""
    return _tfidf([[*stems(topic.text[:_READ]), *map(stem, topic.nouns)] for topic in topics], background)


def _entity_matrix(topics: Sequence[Topic], background: Background | None) -> np.ndarray:
    """What a cataloguer notes: entities and actions, each once."""
    return _tfidf([sorted({*map(stem, topic.nouns), *map(stem, topic.verbs)}) for topic in topics], background)


def _spelling_matrix(topics: Sequence[Topic], background: Background | None) -> np.ndarray:
    """What the letters say: runs of four letters in the first words and in entities, as latent directions."""
    import numpy as np

    texts = [" ".join([topic.text[: _READ // 4], *topic.nouns]).lower() for topic in topics]
    runs = _tfidf([[text[i : i + 4] for i in range(max(0, len(text) - 3))] for text in texts], None)
    left, values, _ = np.linalg.svd(runs, full_matrices=False)
    return left[:, :_LATENT] * values[:_LATENT]


_MATRICES: Mapping[str, Callable[[Sequence[Topic], Background | None], Any]] = {
    "words": _word_matrix,
    "entities": _entity_matrix,
    "spelling": _spelling_matrix,
}


def _tfidf(token_lists: Sequence[Sequence[str]], background: Background | None) -> np.ndarray:
    """Weights of tokens that occur in several texts, but not in most; a text without any gets a column of its own."""
    import numpy as np

    inside = Counter(token for tokens in token_lists for token in set(tokens))
    total, frequency = (background.themes, background.frequencies) if background else (len(token_lists), inside)
    most = max(2.0, (COMMON_SHARE if background else _COMMON_SHARE) * total)
    tokens = sorted(token for token, count in inside.items() if count >= 2 and frequency.get(token, 0) <= most)
    place = {token: position for position, token in enumerate(tokens)}
    matrix = np.zeros((len(token_lists), len(tokens) + 1))
    for row, listed in enumerate(token_lists):
        for token, count in Counter(listed).items():
            if token in place:
                rarity = math.log((1 + total) / (1 + frequency.get(token, 0)))
                matrix[row, place[token]] = (1 + math.log(count)) * rarity
        matrix[row, -1] = 0.0 if matrix[row].any() else 1.0
    return matrix


def _means(matrix: np.ndarray, members: Mapping[int, Sequence[int]]) -> np.ndarray:
    import numpy as np

    return np.stack([matrix[list(positions)].mean(axis=0) for positions in members.values()])


def _cut(matrix: np.ndarray, groups: int, linkage: Linkage) -> list[int]:
    """Group numbers from 1, in the order in which groups first appear."""
    from scipy.cluster.hierarchy import fcluster
    from scipy.cluster.hierarchy import linkage as link

    if len(matrix) <= groups:
        return list(range(1, len(matrix) + 1))
    return _renumbered(fcluster(link(_distances(matrix, linkage), linkage), groups, "maxclust").tolist())


def _merge(partitions: Sequence[Sequence[int]], words: np.ndarray, groups: int) -> list[int]:
    """The partition that the annotators come closest to agreeing on: average linkage over how often they part two.

    Where they part pairs equally often, distance in words decides.
    """
    import numpy as np
    from scipy.cluster.hierarchy import fcluster
    from scipy.cluster.hierarchy import linkage as link

    count = len(partitions[0])
    if count <= groups:
        return list(range(1, count + 1))
    apart = np.array([np.mean([one[i] != one[j] for one in partitions]) for i, j in combinations(range(count), 2)])
    tied = np.round(apart + _TIE_BREAK * _distances(words, "average"), 9)
    return _renumbered(fcluster(link(tied, "average"), groups, "maxclust").tolist())


def _distances(matrix: np.ndarray, linkage: Linkage) -> np.ndarray:
    """Pairwise cosine distances, 0 to 1; for Ward's linkage Euclidean ones of unit vectors."""
    import numpy as np
    from scipy.spatial.distance import pdist

    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    unit = matrix / np.where(lengths == 0, 1, lengths)
    return np.round(pdist(unit, "euclidean") if linkage == "ward" else pdist(unit, "sqeuclidean") / 2, 9)


def _renumbered(groups: Sequence[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers) + 1) for group in groups]


def _agreement(partitions: Sequence[Sequence[int]]) -> float:
    from sklearn.metrics import adjusted_rand_score

    pairs = [adjusted_rand_score(first, second) for first, second in combinations(partitions, 2)]
    return float(sum(pairs) / len(pairs)) if pairs else 1.0


def _label(members: Sequence[Topic], topics: Sequence[Topic], taken: Counter[str]) -> str:
    """The two words that tell these topics from the others, told apart by a number when they were used before."""

    def words(topic: Topic) -> set[str]:
        return {word for word in (*words_of(topic.title), *topic.nouns[:_LABEL_WORDS]) if len(word) > 2}

    inside = Counter(word for topic in members for word in words(topic))
    everywhere = Counter(word for topic in topics for word in words(topic))
    scores = {
        word: count / len(members) * math.log((1 + len(topics)) / everywhere[word]) for word, count in inside.items()
    }
    best: list[str] = []
    for word in sorted(scores, key=lambda word: (-scores[word], word)):
        if stem(word) not in map(stem, best):
            best.append(word)
        if len(best) == 2:
            break
    label = " and ".join(best) or "other"
    taken[label] += 1
    return label if taken[label] == 1 else f"{label} {taken[label]}"
