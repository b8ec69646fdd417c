from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from agent_world.codec import decode, encode
from agent_world.discovery import word_space
from agent_world.discovery.taxonomy import (
    MAX_CATEGORIES,
    MAX_CLUSTERS,
    Annotator,
    IdenticalPassesError,
    Taxonomy,
    build_taxonomy,
    figure,
    sizes,
)
from agent_world.discovery.topics import Topic

SUBJECTS = {
    "travel": "flight airport airline seat passenger departure delay carrier",
    "music": "album artist track playlist genre composer concert band",
    "chemistry": "element isotope decay atom molecule acid reaction lab",
    "banking": "account loan interest deposit transfer bank credit branch",
    "weather": "rain wind humidity temperature forecast storm pressure snow",
}


@pytest.fixture(scope="module")
def topics() -> list[Topic]:
    made = []
    for subject, words in SUBJECTS.items():
        for number in range(6):
            chosen = tuple(random.Random(f"{subject}{number}").sample(words.split(), 6))
            made.append(Topic(key=f"{subject}-{number}", text=" ".join(chosen), nouns=chosen, title=subject))
    return made


def test_topics_of_one_subject_share_a_category(topics):
    taxonomy = build_taxonomy(topics)
    for subject in SUBJECTS:
        found = {category for key, category in taxonomy.assignment.items() if key.startswith(subject)}
        assert len(found) <= 2
    assert len(set(taxonomy.assignment.values())) == len(taxonomy.categories) >= 5


def test_every_topic_is_in_one_cluster_and_one_category(topics):
    taxonomy = build_taxonomy(topics)
    members = [key for cluster in taxonomy.clusters for key in cluster.members]
    assert sorted(members) == sorted(topic.key for topic in topics) == sorted(taxonomy.assignment)
    clusters = [cluster for category in taxonomy.categories for cluster in category.clusters]
    assert sorted(clusters) == sorted(cluster.cluster_id for cluster in taxonomy.clusters)
    assert all(set(cluster.representatives) <= set(cluster.members) for cluster in taxonomy.clusters)
    assert len({cluster.label for cluster in taxonomy.clusters}) == len(taxonomy.clusters)


def test_categories_are_named_by_words_that_several_topics_share(topics):
    taxonomy = build_taxonomy(topics)
    for category in taxonomy.categories:
        first, _, second = category.label.partition(" and ")
        assert category.category_id == f"{first}-{second}"
        members = [key for key, found in taxonomy.assignment.items() if found == category.category_id]
        subjects = {key.rpartition("-")[0] for key in members}
        known = {word for subject in subjects for word in (*SUBJECTS[subject].split(), subject)}
        assert {first, second} <= known
    assert len({category.category_id for category in taxonomy.categories}) == len(taxonomy.categories)


def test_no_category_is_a_catch_all(topics):
    sizes_of = Counter(build_taxonomy(topics).assignment.values())
    assert max(sizes_of.values()) <= len(topics) / 3


def test_words_of_one_company_lie_near_each_other():
    texts = [subject.split() for subject in SUBJECTS.values() for _ in range(4)]
    space = word_space.space_of(texts)
    assert space.place(["rain"]) @ space.place(["snow"]) > 0.9 > space.place(["rain"]) @ space.place(["loan"]) + 0.5
    assert not space.place(["unheard"]).any() and "unheard" not in space


def test_publishers_weigh_alike_however_much_they_publish(monkeypatch):
    monkeypatch.setattr(word_space, "DIRECTIONS", 2)
    few = [SUBJECTS[subject].split() for subject in ("travel", "music") for _ in range(4)]
    many = [[f"crowd{subject}{letter}" for letter in "abcd"] for subject in range(10) for _ in range(6)]
    publishers = [*(f"publisher {number}" for number in range(len(few))), *["one"] * len(many)]

    def place_of(word: str, space) -> float:
        return float(np.linalg.norm(np.frombuffer(space.places[word], np.float32)))

    assert place_of("flight", word_space.space_of([*few, *many], publishers)) > 0.1
    assert place_of("flight", word_space.space_of([*few, *many])) < 0.001


def test_the_order_of_topics_does_not_matter_and_the_taxonomy_travels_as_json(topics):
    taxonomy = build_taxonomy(topics)
    assert build_taxonomy(random.Random(3).sample(topics, len(topics))) == taxonomy
    assert decode(Taxonomy, encode(taxonomy)) == taxonomy


def test_annotators_that_work_alike_are_refused(topics):
    alike = (
        Annotator(name="one", features="prose", linkage="ward"),
        Annotator(name="two", features="prose", linkage="ward"),
    )
    with pytest.raises(IdenticalPassesError, match="one and two work alike"):
        build_taxonomy(topics, annotators=alike)


def test_annotators_agree_more_where_there_is_something_to_see(topics):
    clear = build_taxonomy(topics).agreement
    words = " ".join(SUBJECTS.values()).split()
    noise = [
        Topic(key=f"n{n}", text=" ".join(random.Random(n).sample(words, 8)), title=f"n{n}",
              nouns=tuple(random.Random(-n - 1).sample(words, 6)))
        for n in range(30)
    ]  # fmt: skip
    assert clear > build_taxonomy(noise).agreement + 0.2
    assert clear < 1.0 or len({tuple(one.groups.values()) for one in build_taxonomy(topics).passes}) == 1


def test_sizes_follow_the_number_of_themes_up_to_the_caps():
    assert sizes(2000) == (MAX_CLUSTERS, MAX_CATEGORIES)
    assert sizes(1) == (1, 1)
    counts = [sizes(number) for number in range(1, 200)]
    assert counts == sorted(counts)
    assert all(categories <= clusters <= number for number, (clusters, categories) in enumerate(counts, 1))


def test_small_and_empty_sets_work(topics):
    assert build_taxonomy([]).assignment == {}
    assert set(build_taxonomy(topics[:2]).assignment) == {topics[0].key, topics[1].key}


def test_the_figure_has_a_bar_for_every_category(topics):
    taxonomy = build_taxonomy(topics)
    axes = figure(taxonomy).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] != []
    assert len(axes.get_yticks()) == len(taxonomy.categories)
    assert sum(bar.get_width() for bar in axes.patches) == len(topics)
