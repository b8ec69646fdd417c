"""Agent-World: environments from real data, verifiable tasks, and policies trained on them in rounds.

```python
import agent_world as aw

lake = aw.open("lake")
with lake.environment("air-travel").session(seed=7) as session:
    session.call("search_airports", {"name": "Keflavik"})
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_world.world import BoundTask, World, open

__all__ = ["BoundTask", "World", "open"]


def __getattr__(name: str) -> Any:
    """The public names, imported on first use: the package is imported by every sandboxed and training process."""
    if name in __all__:
        from agent_world import world

        return getattr(world, name)
    raise AttributeError(f"module 'agent_world' has no attribute {name!r}")
