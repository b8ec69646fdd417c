"""A user played by a chat model: it knows what the task's user knows and wants, and no more."""

from __future__ import annotations

from collections.abc import Sequence

from agent_world.models.client import ChatClient, EndpointError
from agent_world.rollouts.users import User, Users
from agent_world.tasks.model import Task, Wish

_KEPT_SEED = 2**31 - 1
_PROMPT = """\
You are a user who has asked an assistant for help. Play that user and nobody else, in one or two short sentences.
What you asked: {instruction}
{wishes}
Tell what you know or want only when you are asked for it. A must stays: insist on it. A wish you give up when you are
told that it cannot be. You know nothing else: say so when you are asked for it, and never make up a name, a number or
a date. You do not know the answer and do not do the assistant's work."""
_LEAD = {"fact": "You know", "constraint": "A must", "preference": "A wish"}


class ChatUser:
    """Plays one episode's user through chat completions; its `s_H` is the conversation so far."""

    def __init__(
        self,
        client: ChatClient,
        instruction: str,
        wishes: Sequence[Wish] = (),
        *,
        seed: int = 0,
        temperature: float = 0.0,
        max_tokens: int = 256,
    ) -> None:
        known = "\n".join(f"{_LEAD[wish.kind]}: {wish.text}" for wish in wishes)
        system = _PROMPT.format(instruction=instruction, wishes=known or "There is nothing else that you know or want.")
        self._client = client
        self._sampling = {"temperature": temperature, "max_tokens": max_tokens, "seed": seed & _KEPT_SEED}
        self._messages = [{"role": "system", "content": system}]

    def reply(self, text: str) -> str:
        """What the model says to `text`; to the model, the agent is the one who writes to it.

        Raises:
            EndpointError: the endpoint failed for good, or the model said nothing.
        """
        said = [*self._messages, {"role": "user", "content": text}]
        response = self._client.complete({"messages": said, **self._sampling})
        answer = (response["choices"][0]["message"].get("content") or "").strip()
        if not answer:
            raise EndpointError(self._client.endpoint.base_url, "the model that plays the user said nothing", 1)
        self._messages = [*said, {"role": "assistant", "content": answer}]
        return answer


def chat_users(client: ChatClient, *, temperature: float = 0.0, max_tokens: int = 256) -> Users:
    """A chat user for each episode, who knows what the task's user knows."""

    def user_of(task: Task, seed: int) -> User:
        return ChatUser(client, task.instruction, task.user, seed=seed, temperature=temperature, max_tokens=max_tokens)

    return user_of
