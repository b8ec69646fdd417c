from __future__ import annotations

import pytest

from agent_world.discovery.words import expanded, noun_of, plural, singular


@pytest.mark.parametrize(
    ("many", "one"),
    [
        ("aliases", "alias"), ("movies", "movie"), ("tomatoes", "tomato"), ("people", "person"), ("statuses", "status"),
        ("diagnoses", "diagnosis"), ("analyses", "analysis"), ("menus", "menu"), ("viruses", "virus"),
        ("radii", "radius"), ("cities", "city"), ("boxes", "box"), ("houses", "house"), ("vpcs", "vpc"),
    ],
)  # fmt: skip
def test_plurals_have_their_singular(many, one):
    assert singular(many) == one
    assert singular(one) == one
    assert singular(plural(one)) == one


@pytest.mark.parametrize("word", "gas lens basis bias physics canvas genius census series weather data class".split())
def test_what_only_ends_like_a_plural_stays(word):
    assert singular(word) == word


@pytest.mark.parametrize(
    ("word", "many"), [("iso", "isos"), ("tomato", "tomatoes"), ("gas", "gases"), ("people", "people"), ("day", "days")]
)
def test_plurals_are_those_of_a_speaker(word, many):
    assert plural(word) == many


@pytest.mark.parametrize(
    ("name", "one", "many"),
    [
        ("invoiceline", "invoice line", "invoice lines"),
        ("omdb", "omdb entry", "omdb entries"),  # no English noun
        ("iso3166-1", "iso 3166 1 entry", "iso 3166 1 entries"),  # the number of a standard
        ("zone1970", "zone 1970", "zones 1970"),  # a noun with a number behind it
        ("zonenow", "zone now entry", "zone now entries"),  # an adverb
        ("indexes", "index", "indexes"),  # the plural that the source uses
        ("people", "person", "people"),
        ("1970", "table 1970", "tables 1970"),
        ("_", "table", "tables"),  # no letter at all
    ],
)
def test_a_table_is_called_what_people_call_its_rows(name, one, many):
    assert noun_of(name) == (one, many)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("memorySizeInMiB", ("memory", "size", "in", "mib")),
        ("MaxGbps", ("maximum", "gbps")),
        ("DefaultVCpus", ("default", "vcpus")),
        ("ec2_instance", ("ec2", "instance")),
        ("alpha2", ("alpha", "2")),
        ("BurstablePerformance", ("burstable", "performance")),
        ("nameFirst", ("first", "name")),
    ],
)
def test_identifiers_are_taken_apart_where_words_end(name, words):
    assert expanded(name) == words
