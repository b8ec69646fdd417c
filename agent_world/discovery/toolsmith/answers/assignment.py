"""Assignments of workers to posts of the same category, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Mapping

from agent_world.discovery.toolsmith.answers.ledger import Ledger, Refusal, need, need_status
from agent_world.environments.model import Json


class AssignmentLedger(Ledger):
    """`workers` and `posts` give the category of each.

    `names` maps assignment, worker, post, kind and subject to the words of the tools.
    """

    def __init__(
        self, *, workers: Mapping[Json, Json], posts: Mapping[Json, Json], limit: int, names: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.workers, self.posts, self.limit, self.names = workers, posts, limit, names

    def assign(self, worker: Json, post: Json) -> dict[str, Json]:
        """Tie a worker to a post."""
        if post not in self.posts or worker not in self.workers:
            raise Refusal("not_found")
        if any(a["worker"] == worker and a["status"] != "released" for a in self.records.values()):
            raise Refusal("already_assigned")
        self._room(worker, post)
        made = self.mint("AS")
        self.records[made] = {"worker": worker, "post": post, "status": "assigned"}
        return {self.names["assignment"]: made, "status": "assigned"}

    def transfer(self, assignment: str, post: Json) -> dict[str, Json]:
        """Move an assignment to another post."""
        found = need(self.records.get(assignment))
        need_status(found, "assigned", code="not_assigned")
        if post not in self.posts:
            raise Refusal("not_found")
        if found["post"] == post:
            raise Refusal("same_" + self.names["subject"])
        self._room(found["worker"], post)
        found["post"] = post
        return {self.names["assignment"]: assignment, self.names["post"]: post}

    def show(self, assignment: str) -> dict[str, Json]:
        """One assignment."""
        found = need(self.records.get(assignment))
        return {
            self.names["assignment"]: assignment,
            self.names["post"]: found["post"],
            self.names["worker"]: found["worker"],
            "status": found["status"],
        }

    def load(self, post: Json) -> dict[str, Json]:
        """How full a post is."""
        if post not in self.posts:
            raise Refusal("not_found")
        taken = self._taken(post)
        return {self.names["post"]: post, "taken": taken, "free": self.limit - taken}

    def _taken(self, post: Json) -> int:
        return sum(a["post"] == post and a["status"] != "released" for a in self.records.values())

    def _room(self, worker: Json, post: Json) -> None:
        if self.workers[worker] is None or self.workers[worker] != self.posts[post]:
            raise Refusal("other_" + self.names["kind"])
        if self._taken(post) >= self.limit:
            raise Refusal("full")
