"""The environment plane: the world an agent acts in. Manifests, services, readiness, state, what a verifier is told."""
