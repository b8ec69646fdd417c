"""Tasks as episodes over plain HTTP, for trainers on other machines; and their client."""
