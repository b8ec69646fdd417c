"""Training jobs, the back-ends that do or render them, and the supervisor that runs them apart."""
