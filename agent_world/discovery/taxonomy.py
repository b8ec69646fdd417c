"""A two-level taxonomy of themes: clusters of texts, merged into categories by three annotator passes (method.md 4).

The passes look at different features with different linkage, as three annotators bring different eyes; what they agree
on is the category, and how far they agree is a figure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from agent_world.discovery.text import stems

if TYPE_CHECKING:
    import numpy as np

MOST_CLUSTERS, MOST_CATEGORIES = 50, 20
_THEMES_A_CLUSTER, _CLUSTERS_A_CATEGORY = 2.0, 2.5
_REPRESENTATIVES = 3
_LABEL_WORDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A theme as the taxonomy reads it: its key, its text, and its entity words."""

    key: str
    text: str
    nouns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotatorPass:
    """How one annotator looks: at which features, joined by which linkage."""

    name: str
    features: Literal["words", "characters", "nouns"]
    linkage: Literal["average", "complete", "ward"]


PASSES = (
    AnnotatorPass(name="words", features="words", linkage="average"),
    AnnotatorPass(name="spelling", features="characters", linkage="complete"),
    AnnotatorPass(name="entities", features="nouns", linkage="ward"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A second-level label: its themes, and the few that stand nearest to its middle."""

    id: str
    label: str
    members: tuple[str, ...]
    representatives: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """A first-level label and its clusters."""

    id: str
    label: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taxonomy:
    """The payload of a `taxonomy` version. `assignment` maps a theme's key to the label of its category.

    `agreement` is the mean adjusted Rand index over pairs of passes: 1 for the same merging, 0 for chance.
    """

    clusters: tuple[Cluster, ...]
    categories: tuple[Category, ...]
    assignment: Mapping[str, str]
    agreement: float
    passes: tuple[Mapping[str, Any], ...]


def build_taxonomy(topics: Sequence[Topic], passes: Sequence[AnnotatorPass] = PASSES) -> Taxonomy:
    """Cluster the topics, then merge the clusters by what the passes agree on.

    Raises:
        ValueError: fewer than three topics, or two passes that look alike: their agreement would say nothing.
    """
    if len(topics) < 3:
        raise ValueError(f"a taxonomy needs three themes at least, not {len(topics)}")
    if len({(one.features, one.linkage) for one in passes}) < len(passes):
        raise ValueError("two annotator passes use the same features and linkage; their agreement would say nothing")
    topics = sorted(topics, key=lambda topic: topic.key)
    size = min(MOST_CLUSTERS, max(2, round(len(topics) / _THEMES_A_CLUSTER)))
    words = _features(topics, "words")
    groups = _groups(_cut(words, "average", size))
    clusters = tuple(_cluster(number, group, topics, words) for number, group in enumerate(groups))
    count = min(MOST_CATEGORIES, max(2, round(len(clusters) / _CLUSTERS_A_CATEGORY)))
    merged = [_merge(one, groups, topics, count) for one in passes]
    categories = _categories(_agreed(merged, count), clusters, groups, topics)
    label_of = {cluster: category.label for category in categories for cluster in category.clusters}
    return Taxonomy(
        clusters=clusters,
        categories=categories,
        assignment={member: label_of[cluster.id] for cluster in clusters for member in cluster.members},
        agreement=_agreement(merged),
        passes=tuple(
            {
                "name": one.name,
                "features": one.features,
                "linkage": one.linkage,
                "merging": [int(label) for label in labels],
            }
            for one, labels in zip(passes, merged, strict=True)
        ),
    )


def _features(topics: Sequence[Topic], kind: str) -> np.ndarray:
    """One unit row a topic, dense."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [" ".join(topic.nouns) or topic.text if kind == "nouns" else topic.text for topic in topics]
    if kind == "characters":
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), max_features=20_000, sublinear_tf=True)
    else:
        vectorizer = TfidfVectorizer(analyzer=lambda text: list(stems(text)), sublinear_tf=True, max_df=0.5)
    return vectorizer.fit_transform(texts).toarray()


def _cut(points: np.ndarray, linkage: str, size: int) -> np.ndarray:
    """Cluster numbers by first appearance, of a tree cut to `size` clusters."""
    from scipy.cluster.hierarchy import fcluster
    from scipy.cluster.hierarchy import linkage as tree_of

    if len(points) <= size:
        import numpy as np

        return np.arange(len(points))
    # A row of zeros has no cosine; Ward needs Euclidean distances, which order unit rows as cosines do.
    tree = tree_of(points, method=linkage, metric="euclidean")
    return _renumbered(fcluster(tree, size, criterion="maxclust"))


def _renumbered(labels: np.ndarray) -> np.ndarray:
    import numpy as np

    order = {label: number for number, label in enumerate(dict.fromkeys(labels.tolist()))}
    return np.array([order[label] for label in labels.tolist()])


def _groups(labels: np.ndarray) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for index, label in enumerate(labels.tolist()):
        groups.setdefault(label, []).append(index)
    return list(groups.values())


def _cluster(number: int, group: Sequence[int], topics: Sequence[Topic], words: np.ndarray) -> Cluster:
    middle = words[group].mean(axis=0)
    nearest = sorted(group, key=lambda index: (-float(words[index] @ middle), topics[index].key))
    return Cluster(
        id=f"c{number:02d}",
        label=_label([topics[index] for index in group], topics),
        members=tuple(topics[index].key for index in group),
        representatives=tuple(topics[index].key for index in nearest[:_REPRESENTATIVES]),
    )


def _merge(one: AnnotatorPass, groups: Sequence[Sequence[int]], topics: Sequence[Topic], count: int) -> np.ndarray:
    """One annotator's merging: a category number for each cluster."""
    import numpy as np

    points = _features(topics, one.features)
    middles = np.array([points[group].mean(axis=0) for group in groups])
    lengths = np.linalg.norm(middles, axis=1, keepdims=True)
    return _cut(middles / np.where(lengths, lengths, 1.0), one.linkage, count)


def _agreed(merged: Sequence[np.ndarray], count: int) -> np.ndarray:
    """The merging that the passes agree on: clusters are near when many passes put them together."""
    import numpy as np
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    together = np.mean([labels[:, None] == labels[None, :] for labels in merged], axis=0)
    if len(together) <= count:
        return np.arange(len(together))
    return _renumbered(
        fcluster(linkage(squareform(1 - together, checks=False), "average"), count, criterion="maxclust")
    )


def _agreement(merged: Sequence[np.ndarray]) -> float:
    from sklearn.metrics import adjusted_rand_score

    scores = [float(adjusted_rand_score(one, other)) for one, other in combinations(merged, 2)]
    return round(sum(scores) / len(scores), 6)


def _categories(
    labels: np.ndarray, clusters: Sequence[Cluster], groups: Sequence[Sequence[int]], topics: Sequence[Topic]
) -> tuple[Category, ...]:
    found, taken = [], set()
    for number, members in enumerate(_groups(labels)):
        own = [topics[index] for member in members for index in groups[member]]
        label = _label(own, topics)
        while label in taken:
            label += " (other)"
        taken.add(label)
        found.append(Category(id=f"k{number:02d}", label=label, clusters=tuple(clusters[m].id for m in members)))
    return tuple(found)


def _label(own: Sequence[Topic], everyone: Sequence[Topic]) -> str:
    """The entity words that tell these topics from all others."""
    from collections import Counter

    here = Counter(noun.casefold() for topic in own for noun in set(topic.nouns))
    there = Counter(noun.casefold() for topic in everyone for noun in set(topic.nouns))
    ranked = sorted(here, key=lambda noun: (-here[noun] * here[noun] / there[noun], noun))
    return ", ".join(ranked[:_LABEL_WORDS]) or own[0].key
