"""The engine's API over its socket: finding it, speaking HTTP to it, and the few calls we need."""
