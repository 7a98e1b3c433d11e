"""Dockerfiles, as far as a box on the host's own programs can follow them: read, expand, ignore, build."""
