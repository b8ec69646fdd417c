"""How often search is right, measured against labels given by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent_world.discovery.corpus import Corpus
from agent_world.discovery.mining import find_data_for, is_convincing
from agent_world.discovery.themes.documents import Draft


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchReport:
    """What search did with labelled themes.

    `matchable` themes have data by hand; of these `top_one` had right data ranked first. Of all themes `accepted`
    passed the rule of mining, `accepted_right` of them with right data. `errors` are the accepted wrong ones, as
    (theme, package).
    """

    themes: int
    matchable: int
    top_one: int
    accepted: int
    accepted_right: int
    errors: tuple[tuple[str, str], ...]

    @property
    def top_one_precision(self) -> float:
        """The share of matchable themes whose best candidate is right."""
        return self.top_one / self.matchable if self.matchable else 1.0

    @property
    def accepted_precision(self) -> float:
        """The share of accepted themes that got right data."""
        return self.accepted_right / self.accepted if self.accepted else 1.0


def evaluate_matches(drafts: Iterable[Draft], labels: Mapping[str, Sequence[str]], corpus: Corpus) -> MatchReport:
    """Compare search with `labels`: theme id to the packages that are right for it (none: no data fits)."""
    themes = matchable = top_one = 0
    accepted: list[tuple[str, str, bool]] = []
    for draft in drafts:
        origin = draft.document.origin
        if origin not in labels:
            continue
        themes += 1
        matchable += bool(labels[origin])
        candidates = find_data_for(draft.title, draft.text, corpus)
        top_one += bool(candidates) and candidates[0].document.package in labels[origin]
        chosen = next((candidate for candidate in candidates if is_convincing(candidate)), None)
        if chosen:
            package = chosen.document.package
            accepted.append((origin, package, package in labels[origin]))
    return MatchReport(
        themes=themes,
        matchable=matchable,
        top_one=top_one,
        accepted=len(accepted),
        accepted_right=sum(right for _, _, right in accepted),
        errors=tuple((origin, package) for origin, package, right in accepted if not right),
    )
