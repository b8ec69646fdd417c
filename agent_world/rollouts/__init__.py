"""Episodes, rewards and scripted policies (method.md 6); a policy needs no more than `rollouts.model`."""
